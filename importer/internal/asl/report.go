package asl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Verdict is how a state was taken over.
type Verdict string

// The verdicts.
const (
	TakenOver  Verdict = "taken over"
	Difference Verdict = "taken over with a difference"
	NotTaken   Verdict = "not taken over"
)

// Report says state by state what became of a definition.
type Report struct {
	Workflow string `json:"workflow"`
	// States are in the order of the definition, those of branches behind their Parallel.
	States []StateReport `json:"states"`
	// Everywhere are differences that hold for all of it.
	Everywhere []string `json:"everywhere"`
	// Output is what an execution would have given, as an expression over the job.
	Output    string `json:"output"`
	Taken     int    `json:"taken"`
	Different int    `json:"different"`
	NotTaken  int    `json:"notTaken"`
}

// StateReport says what became of one state.
type StateReport struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Pointer string  `json:"pointer"`
	Verdict Verdict `json:"verdict"`
	// Becomes says what it is in the workflow.
	Becomes string `json:"becomes"`
	// Differences say what is otherwise than it was, and Left what is to be done by hand.
	Differences []string `json:"differences"`
	Left        []string `json:"left"`
}

// count gives each state its verdict.
func (r *Report) count() {
	for i := range r.States {
		s := &r.States[i]
		switch {
		case len(s.Left) > 0:
			s.Verdict = NotTaken
			r.NotTaken++
		case len(s.Differences) > 0:
			s.Verdict = Difference
			r.Different++
		default:
			s.Verdict = TakenOver
			r.Taken++
		}
	}
}

// Whole reports whether nothing was left.
func (r *Report) Whole() bool { return r.NotTaken == 0 }

// Summary is the report in one line.
func (r *Report) Summary() string {
	n := len(r.States)
	return fmt.Sprintf("%d of %d states taken over, %d with a difference, %d not", r.Taken, n, r.Different, r.NotTaken)
}

// remarks are all that is said of a state.
func (s *StateReport) remarks() []string {
	var all []string
	for _, text := range s.Left {
		all = append(all, "not taken over: "+text)
	}
	for _, text := range s.Differences {
		all = append(all, "a difference: "+text)
	}
	return all
}

// Text is the report for a terminal.
func (r *Report) Text() string {
	var out strings.Builder
	name, kind := len("state"), len("type")
	for _, s := range r.States {
		name, kind = max(name, utf8.RuneCountInString(s.Name)), max(kind, len(s.Type))
	}
	name = min(name, 40)
	line := func(a, b, c string) { fmt.Fprintf(&out, "%-*s  %-*s  %s\n", name, a, kind, b, c) }
	line("state", "type", "becomes")
	for _, s := range r.States {
		line(s.Name, s.Type, s.Becomes)
		for _, remark := range s.remarks() {
			line("", "", "  "+remark)
		}
	}
	for _, text := range r.Everywhere {
		fmt.Fprintf(&out, "everywhere: %s\n", text)
	}
	fmt.Fprintln(&out, r.Summary())
	return out.String()
}

// Markdown is the report as a file.
func (r *Report) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# How %s was taken over\n\n", r.Workflow)
	fmt.Fprintf(&out, "Written by `makegood-import` from a definition in Amazon States Language. %s.\n\n", r.Summary())
	out.WriteString("| state | type | | becomes | what to know |\n|---|---|---|---|---|\n")
	for _, s := range r.States {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", cell(s.Name), s.Type, s.Verdict, cell(s.Becomes), cell(strings.Join(s.remarks(), "\n")))
	}
	if len(r.Everywhere) > 0 {
		out.WriteString("\n## Everywhere\n\n")
		for _, text := range r.Everywhere {
			fmt.Fprintf(&out, "- %s\n", text)
		}
	}
	if r.Output != "" {
		fmt.Fprintf(&out, "\n## What an execution gave at its end\n\nA job has the outputs of its steps. What the execution gave is this of them:\n\n```jq\n%s\n```\n", r.Output)
	}
	return out.String()
}

// cell quotes what would end a cell of a table, or be taken for HTML.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "\r", " ", "<", "&lt;").Replace(text)
}
