package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

// MaxErrors is how many errors are told; of more, how many there are.
const MaxErrors = 20

// Line is one job to be run.
type Line struct {
	// Number counts the lines of the file from 1, blank ones too.
	Number int
	// ID is the job's id: .id of the line, or what the id expression gives, or made of the number and
	// the content.
	ID string
	// Input is the value as it was written, without white space around it.
	Input json.RawMessage
	// Hash is canonical.Hash of the canonical form: equal for equal content.
	Hash string
}

// Error is a fault of a line; Line is 0 for a fault of the file as a whole.
type Error = workflowfile.Error

// Errors are the faults of a file, by line.
type Errors struct {
	// First are the first MaxErrors errors; More is how many there are besides.
	First []Error
	More  int
}

// Error writes one error a line.
func (e *Errors) Error() string {
	var lines []string
	for _, one := range e.First {
		lines = append(lines, one.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Inputs are the file of inputs of makegood run: one JSON value a line, each the input of one job, with an id for each.
type Inputs struct {
	name string
	from io.ReadCloser
	// id returns a line's id; nil: .id.
	id *jq.Program
}

// Close closes the file.
func (in *Inputs) Close() error { return in.from.Close() }

// NewInputs returns the inputs of a file that is not read yet. The name is used in errors only. idExpression is jq that
// gives a line's id, a text or a number, or null for none; empty: .id of the line.
func NewInputs(name string, from io.ReadCloser, idExpression string) (*Inputs, error) {
	in := &Inputs{name: name, from: from}
	if idExpression == "" {
		return in, nil
	}
	var err error
	if in.id, err = jq.Compile(idExpression); err != nil {
		return nil, fmt.Errorf("--id %s: %w", idExpression, err)
	}
	return in, nil
}

// Lines reads the file, once. It is either right or refused as a whole. Blank lines are skipped, and so is a line that
// says the same as one before it under the same id. Errors in lines are an *Errors, and then no line is given; any
// other error is that of reading. All lines are held in memory.
func (in *Inputs) Lines() ([]Line, error) {
	r := reader{file: in.name, id: in.id, ids: map[string]int{}}
	for text, err := range Texts(in.from, makegood.MaxPayloadBytes) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", in.name, err)
		}
		r.line(text)
	}
	if len(r.errors.First) > 0 {
		return nil, &r.errors
	}
	return r.lines, nil
}

// within calls Lines, and returns early when ctx ends. The goroutine that reads a pipe which stays open remains then.
func (in *Inputs) within(ctx context.Context) ([]Line, error) {
	type result struct {
		lines []Line
		err   error
	}
	read := make(chan result, 1)
	go func() {
		lines, err := in.Lines()
		read <- result{lines, err}
	}()
	select {
	case r := <-read:
		return r.lines, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// mark is what some programs begin a file with, to say that it is UTF-8.
const mark = "\uFEFF"

// Text is a line of a file, as it is written there, without white space around it.
type Text struct {
	// Number counts the lines of the file from 1, blank ones too.
	Number int
	// Bytes may be kept. Of a line that is too long there are none.
	Bytes []byte
	Long  bool
}

// Texts returns the lines of a file, each of at most so many bytes; a zero line carries the error that ended it. A
// mark at the file's beginning is left out. It holds no more than a line in memory.
func Texts(from io.Reader, most int) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		lines := bufio.NewReaderSize(from, 64<<10)
		for number := 1; ; number++ {
			// The line may end in CR LF, and the first begin with a mark.
			text, long, err := readLine(lines, most+len(mark+"\r\n"))
			if number == 1 {
				text = bytes.TrimPrefix(text, []byte(mark))
			}
			if text = bytes.Trim(text, " \t\r\n"); len(text) > most {
				text, long = nil, true
			}
			ended := errors.Is(err, io.EOF)
			if err == nil || ended {
				if !yield(Text{number, text, long}, nil) || ended {
					return
				}
				continue
			}
			yield(Text{}, err)
			return
		}
	}
}

// readLine returns the next line, which the caller may keep. It keeps no part of a line that is too long.
func readLine(from *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		piece, err := from.ReadSlice('\n')
		if len(line)+len(piece) > most {
			line, long = nil, true
		}
		if !long {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// Add notes a fault of a line; beyond MaxErrors, only that there are more.
func (e *Errors) Add(file string, number int, format string, args ...any) {
	if len(e.First) == MaxErrors {
		e.More++
		return
	}
	e.First = append(e.First, Error{File: file, Line: number, Message: fmt.Sprintf(format, args...)})
}

// reader collects the lines of one file, and their faults.
type reader struct {
	file string
	// id returns a line's id; nil: .id.
	id    *jq.Program
	lines []Line
	// ids says which of lines has an id.
	ids    map[string]int
	errors Errors
}

func (r *reader) add(number int, format string, args ...any) {
	r.errors.Add(r.file, number, format, args...)
}

func (r *reader) line(of Text) {
	number, text := of.Number, of.Bytes
	switch {
	case of.Long:
		r.add(number, "more than %d bytes, which is the limit of a job's input", makegood.MaxPayloadBytes)
		return
	case len(text) == 0:
		return
	}
	value, err := canonical.JSON(text)
	if err != nil {
		r.add(number, "not strict JSON: %v", err)
		return
	}
	line := Line{Number: number, Input: text, Hash: canonical.Hash(value)}
	if line.ID, err = r.idOf(text); err != nil {
		r.add(number, "%v", err)
		return
	}
	if line.ID == "" {
		const digits = 12
		line.ID = fmt.Sprintf("line-%d-%s", number, line.Hash[:digits])
	}
	first, taken := r.ids[line.ID]
	switch {
	case !taken:
		r.ids[line.ID] = len(r.lines)
		r.lines = append(r.lines, line)
	case r.lines[first].Hash != line.Hash:
		r.add(number, "the id %q is that of line %d already, with other content", line.ID, r.lines[first].Number)
	}
}

// idOf returns the id that a line says, or "" when it says none.
func (r *reader) idOf(text []byte) (string, error) {
	value, err := jq.Decode(text)
	if err != nil {
		return "", err
	}
	source := ".id"
	if r.id != nil {
		source = "--id " + r.id.Source()
		if value, err = r.id.Run(context.Background(), value); err != nil {
			return "", fmt.Errorf("%s: %w", source, err)
		}
	} else {
		object, _ := value.(map[string]any)
		value = object["id"]
	}
	if value == nil {
		return "", nil
	}
	id, isText := value.(string)
	if !isText {
		if id, err = number(value); err != nil {
			return "", fmt.Errorf("%s %w", source, err)
		}
	}
	return id, checkID(source, id)
}

// number writes a number as it was written.
func number(value any) (string, error) {
	switch value.(type) {
	case bool, []any, map[string]any:
		return "", errors.New("is neither a text nor a number")
	}
	text, err := jq.Append(nil, value, makegood.MaxPayloadBytes)
	return string(text), err
}

func checkID(source, id string) error {
	if err := makegood.CheckJobID(id); err != nil {
		return fmt.Errorf("%s %w", source, err)
	}
	return nil
}
