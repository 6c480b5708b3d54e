package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// MaxSubmissions is how many submissions a file may have: their ids are held while it is checked.
	MaxSubmissions = 1_000_000
	// maxAround is how many bytes a line may have beside the input.
	maxAround = 16 << 10
	// maxStem is how much of a file's name is part of the ids that are made for its lines.
	maxStem = 48
	// hashDigits is how many digits of a line's hash are.
	hashDigits = 12
)

// Submission is a submission, and where it stands.
type Submission struct {
	// Number counts the lines of the file from 1, blank ones too.
	Number int
	makegood.Submission
}

// Submissions is what a file has in it that is right.
type Submissions struct {
	// Lines is how many submissions it has.
	Lines int
	// Workflows are the names of their workflows, with the first line of each.
	Workflows map[string]int
}

// CheckSubmissions reads a file of submissions through: one JSON object a line, each for one job. EachSubmission
// reads it again, to submit them. Neither holds more than a line of the file, and the ids. The name is used in errors
// only. An *Errors lists the faulty lines; any other error is that of reading. A repeated id must have the same
// submission.
func CheckSubmissions(name string, from io.Reader) (Submissions, error) {
	found := Submissions{Workflows: map[string]int{}}
	var wrong Errors
	ids := map[string]seen{}
	for text, err := range Texts(from, makegood.MaxPayloadBytes+maxAround) {
		if err != nil {
			return found, fmt.Errorf("read %s: %w", name, err)
		}
		line, hash, err := read(name, text)
		switch {
		case errors.Is(err, errBlank):
			continue
		case err != nil:
			wrong.Add(name, text.Number, "%v", err)
			continue
		}
		if first, taken := ids[line.ID]; taken && first.hash != hash {
			wrong.Add(name, text.Number, "the id %q is that of line %d already, with other content", line.ID, first.line)
			continue
		} else if !taken {
			ids[line.ID] = seen{text.Number, hash}
		}
		if found.Lines++; found.Lines > MaxSubmissions {
			wrong.Add(name, text.Number, "more than %d submissions, which is the limit of a file", MaxSubmissions)
			break
		}
		if found.Workflows[line.Workflow] == 0 {
			found.Workflows[line.Workflow] = text.Number
		}
	}
	if len(wrong.First) > 0 {
		return found, &wrong
	}
	return found, nil
}

// seen is where an id was, and with what.
type seen struct {
	line int
	hash string
}

// EachSubmission returns the submissions of a file that was checked, in their order. A line that is faulty now, since
// the file has changed, ends it.
func EachSubmission(name string, from io.Reader) iter.Seq2[Submission, error] {
	return func(yield func(Submission, error) bool) {
		for text, err := range Texts(from, makegood.MaxPayloadBytes+maxAround) {
			var line Submission
			if err == nil {
				line, _, err = read(name, text)
			}
			switch {
			case errors.Is(err, errBlank):
				continue
			case err != nil:
				yield(line, fmt.Errorf("%s:%d: %w", name, text.Number, err))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// errBlank: the line is empty.
var errBlank = errors.New("the line is blank")

// read reads a line, and gives it an id made of the file's name, its number and its content if it has none: so the
// same file again is the same jobs.
func read(name string, text Text) (Submission, string, error) {
	switch {
	case text.Long:
		return Submission{}, "", fmt.Errorf("more than %d bytes, which is the limit of a submission", makegood.MaxPayloadBytes+maxAround)
	case len(text.Bytes) == 0:
		return Submission{}, "", errBlank
	}
	value, err := canonical.JSON(text.Bytes)
	if err != nil {
		return Submission{}, "", fmt.Errorf("not strict JSON: %w", err)
	}
	s, err := decode(text.Bytes)
	if err != nil {
		return Submission{}, "", err
	}
	hash := canonical.Hash(value)
	if s.ID == "" {
		s.ID = fmt.Sprintf("%s-%d-%s", stem(name), text.Number, hash[:hashDigits])
	}
	return Submission{text.Number, s}, hash, nil
}

// stem is as much of a file's name as an id may have in it.
func stem(name string) string {
	name = filepath.Base(name)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	name = strings.Map(func(r rune) rune {
		if makegood.CheckJobID(string(r)) != nil {
			return '-'
		}
		return r
	}, name)
	return name[:min(len(name), maxStem)]
}

// field is a field of a line, and how it is read.
type field struct {
	name string
	want string
	into func(s *makegood.Submission) any
}

// fields are those that a line may have: those of a submission at the API.
var fields = []field{
	{"id", "a text", func(s *makegood.Submission) any { return &s.ID }},
	{"workflow", "a text", func(s *makegood.Submission) any { return &s.Workflow }},
	{"input", "JSON", func(s *makegood.Submission) any { return &s.Input }},
	{"startAt", "a time as in RFC 3339, such as 2026-01-31T09:00:00Z", func(s *makegood.Submission) any { return &s.StartAt }},
	{"replyTo", "a text", func(s *makegood.Submission) any { return &s.ReplyTo }},
	{"tenant", "a text", func(s *makegood.Submission) any { return &s.Tenant }},
	{"priority", "a text", func(s *makegood.Submission) any { return &s.Priority }},
	{"labels", "an object of texts", func(s *makegood.Submission) any { return &s.Labels }},
}

// decode reads an object with exactly these fields.
func decode(text []byte) (s makegood.Submission, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil || given == nil {
		return s, errors.New("want an object with workflow, input and, better, id")
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.name)
		value, there := given[f.name]
		delete(given, f.name)
		if !there {
			continue
		}
		if err := json.Unmarshal(value, f.into(&s)); err != nil {
			return s, fmt.Errorf("%s: want %s", f.name, f.want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		return s, fmt.Errorf("there is no field %.40q; there are %s", name, strings.Join(known, ", "))
	}
	return s, check(s)
}

// check returns the fault of a submission to any workflow.
func check(s makegood.Submission) error {
	if s.ID != "" {
		if err := makegood.CheckJobID(s.ID); err != nil {
			return fmt.Errorf("id %w", err)
		}
	}
	if err := limits.WorkflowName.Check(s.Workflow); err != nil {
		return fmt.Errorf("workflow: %w", err)
	}
	if s.Tenant != "" {
		if err := limits.TenantName.Check(s.Tenant); err != nil {
			return fmt.Errorf("tenant: %w", err)
		}
	}
	if err := domain.CheckPriority(s.Priority); err != nil {
		return err
	}
	if err := limits.CheckLabels(s.Labels); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	switch {
	case s.Input == nil:
		return errors.New("input is missing; null is an input")
	case len(s.Input) > makegood.MaxPayloadBytes:
		return fmt.Errorf("input has %d bytes, the limit is %d", len(s.Input), makegood.MaxPayloadBytes)
	}
	return nil
}
