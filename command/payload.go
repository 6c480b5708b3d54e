package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// inputPlace is how payload get calls the input of a job; no step is called so that has one, since it comes first.
const inputPlace = "input"

// newPayload makes the verbs for payloads too large for an input or output.
func newPayload() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "payload",
		Short: "Write and read large payloads: what an input or an output refers to",
		Long: fmt.Sprintf(`Write and read large payloads: bytes of anything, up to %d MB, that an input or an output refers to.
They are kept for one job, by their content, and go with it.`, makegood.MaxLargePayloadBytes>>20),
		Example: `  makegood payload get report-7 render > report.pdf
  makegood payload put report-7 scan.tiff`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPayloadGet(), newPayloadPut())
	return cmd
}

func newPayloadGet() *cobra.Command {
	var o remote
	var to, at string
	cmd := &cobra.Command{
		Use:   "get JOB STEP, or get JOB input",
		Short: "Read the payload that a step's output, or the job's input, refers to",
		Long: `Read the payload that the output of a step refers to, or the input of the job, and write it to standard
output, or to a file. A file that is there is replaced when all has come and its hash is right, and else left
as it is. Where a value refers to several, they are listed, and --at names one by its place.

Exit status: 0; 1 bad usage, no such job, step or payload; 3 the API or a stack's bucket cannot be reached or refuses,
or the payload was cut off or altered.`,
		Example: `  makegood payload get report-7 render > report.pdf
  makegood payload get report-7 input --to order.json
  makegood payload get report-7 render --at .pages[2] --to page.png
  makegood payload get report-7 render --to report.pdf --stack shop-prod`,
		Args: exactly("JOB", "STEP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client(cmd)
			if err != nil {
				return err
			}
			job, err := c.Get(cmd.Context(), args[0])
			if err != nil {
				return failed(cmd, err)
			}
			p, err := choose(job, args[1], at)
			if err != nil {
				return exit(codeUsage, err)
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), p)
			}
			return download(cmd, c, job.ID, p, to)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "write it to this `file`")
	cmd.Flags().StringVar(&at, "at", "", "`place` of the reference in the value, where there are several, such as .report")
	cmd.ValidArgsFunction = completeIDs(&o, new(string))
	return cmd
}

func newPayloadPut() *cobra.Command {
	var o remote
	var kind string
	cmd := &cobra.Command{
		Use:   "put JOB FILE, or put JOB -",
		Short: "Write a payload for a job that is to be submitted, and print its reference",
		Long: `Write a payload for a job that is to be submitted, or is there, and print the reference that goes into the
job's input. A payload that no job refers to goes after some weeks. On a stack it goes past the API into its
bucket: a file is read twice, and bytes from a pipe are kept in a temporary file until they were sent. The
same again is not sent again.

Exit status: 0; 1 bad usage, it is too large, or the stack has no payload store; 3 the API or the bucket cannot be
reached or refuses: the whole was written or none, and it can be written again.`,
		Example: `  REPORT=$(makegood payload put report-7 report.pdf)
  makegood submit check --id report-7 --input "{\"report\":$REPORT}"
  pg_dump shop | makegood payload put import-9 - --type application/sql --stack shop-prod`,
		Args: exactly("JOB", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client(cmd)
			if err != nil {
				return err
			}
			p, err := upload(cmd, c, args[0], args[1], kind)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), p)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&kind, "type", "", "its media `type`, such as application/pdf (default: by the ending of the file's name)")
	return cmd
}

// exactly wants these arguments.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s takes %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// upload writes a file, or standard input, as a payload of a job.
func upload(cmd *cobra.Command, c api.Payloads, id, file, kind string) (makegood.Payload, error) {
	from, length := cmd.InOrStdin(), int64(-1)
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return makegood.Payload{}, exit(codeUsage, err)
		}
		defer opened.Close()
		if info, err := opened.Stat(); err == nil && info.Mode().IsRegular() {
			length = info.Size()
		}
		from = opened
		if kind == "" {
			kind = mime.TypeByExtension(filepath.Ext(file))
		}
	}
	progress := newByteBar(cmd.Context(), cmd.ErrOrStderr(), length)
	p, err := c.WritePayload(cmd.Context(), id, kind, progress.over(from))
	progress.close()
	return p, failed(cmd, err)
}

// placed is a reference, and where in a value it stands.
type placed struct {
	at string
	p  makegood.Payload
}

// choose finds the payload that is meant.
func choose(job makegood.Job, of, at string) (makegood.Payload, error) {
	value, known := job.Input, of == inputPlace
	for _, s := range job.Steps {
		if s.Name == of {
			value, known = s.Output, true
		}
	}
	if !known {
		return makegood.Payload{}, fmt.Errorf("job %s has no step %q", job.ID, of)
	}
	all := referencesIn(value, "")
	if at != "" {
		all = slices.DeleteFunc(all, func(one placed) bool { return one.at != at })
	}
	switch len(all) {
	case 0:
		return makegood.Payload{}, fmt.Errorf("%s of job %s refers to no large payload%s: makegood get %s shows it", of, job.ID, atText(at), job.ID)
	case 1:
		return all[0].p, nil
	}
	var lines []string
	for _, one := range all {
		lines = append(lines, fmt.Sprintf("  --at %s  %v", one.at, one.p))
	}
	return makegood.Payload{}, fmt.Errorf("%s of job %s refers to several payloads; say which:\n%s", of, job.ID, strings.Join(lines, "\n"))
}

// maxPayloadLines is how many large payloads get names with the command that reads them.
const maxPayloadLines = 10

// payloadLines are the large payloads that the input and the outputs of a job refer to, with the commands that read
// them.
func payloadLines(job makegood.Job, program, where string) (lines []string) {
	more := 0
	add := func(of string, value json.RawMessage) {
		all := referencesIn(value, "")
		for _, one := range all {
			if len(lines) == maxPayloadLines {
				more++
				continue
			}
			at := ""
			if len(all) > 1 {
				at = " --at " + quoted(one.at)
			}
			lines = append(lines, fmt.Sprintf("  payload of %s  %v: %s payload get %s %s%s --to FILE%s", of, plain.Line(one.p.String()), program, job.ID, of, at, where))
		}
	}
	add(inputPlace, job.Input)
	for _, s := range job.Steps {
		add(s.Name, s.Output)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// quoted is a text for a shell, in quotes where it needs them. A name in a value is its writer's, and may be anything.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(plain.Line(text), "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:-]+$`)

func atText(at string) string {
	if at == "" {
		return ""
	}
	return " at " + at
}

// referencesIn finds the references in a value, in the order of their places.
func referencesIn(value json.RawMessage, at string) []placed {
	if p, whole := domain.WholePayload(value); whole {
		return []placed{{at, p}}
	}
	var all []placed
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(value, &object) == nil:
		for name, member := range object {
			all = append(all, referencesIn(member, at+"."+name)...)
		}
		slices.SortFunc(all, func(a, b placed) int { return strings.Compare(a.at, b.at) })
	case json.Unmarshal(value, &list) == nil:
		for i, item := range list {
			all = append(all, referencesIn(item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return all
}

// download reads a payload into a file, or to standard output.
func download(cmd *cobra.Command, c api.Payloads, id string, p makegood.Payload, to string) error {
	r, err := c.OpenPayload(cmd.Context(), id, p)
	if errors.Is(err, api.ErrNoPayload) {
		return exit(codeUsage, err)
	}
	if err != nil {
		return failed(cmd, err)
	}
	defer r.Close()
	var progress bar
	// On one terminal a bar would stand in the middle of the output.
	if to != "" || !isTerminal(cmd.OutOrStdout()) {
		progress = newByteBar(cmd.Context(), cmd.ErrOrStderr(), p.Bytes)
	}
	if to == "" {
		_, err = io.Copy(cmd.OutOrStdout(), progress.over(r))
	} else {
		err = replaceFile(to, progress.over(r))
	}
	progress.close()
	if err != nil {
		return exit(codeFailed, fmt.Errorf("read the payload of job %s: %w", id, err))
	}
	return nil
}

// replaceFile writes a file under another name first, so that one that is there is not lost to half of another.
func replaceFile(path string, from io.Reader) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".makegood-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// readInput returns the input of a submission. A file that is too large for an input is first written as a payload of
// the job, and the input is its reference; the job gets its id here, if none was given.
func (o *submitOptions) readInput(cmd *cobra.Command) (json.RawMessage, error) {
	file, isFile := strings.CutPrefix(o.input, "@")
	info, err := os.Stat(file)
	if !isFile || err != nil || info.Size() <= makegood.MaxPayloadBytes {
		input, err := readJSON("--input", cmd.InOrStdin(), o.input)
		if err != nil {
			err = exit(codeUsage, err)
		}
		return input, err
	}
	c, err := o.client(cmd)
	if err != nil {
		return nil, err
	}
	if err := checkJSON(file); err != nil {
		return nil, exit(codeUsage, fmt.Errorf("--input: %w", err))
	}
	if o.id == "" {
		o.id = protocol.NewJobID(time.Now())
	}
	p, err := upload(cmd, c, o.id, file, makegood.PayloadJSON)
	if err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// checkJSON reads a file through, in little memory, and says why it is no JSON value.
func checkJSON(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for depth, begun := 0, false; depth > 0 || !begun; begun = true {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("%s is not JSON: %w; makegood payload put takes anything", file, err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more text follows the JSON value", file)
	}
	return nil
}
