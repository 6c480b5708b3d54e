package notify

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/makegood-dev/makegood/internal/plain"
)

// Subject is the alert in one line of at most MaxSubjectBytes bytes of ASCII: what, and how many.
func (a Alert) Subject() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "Makegood: "+a.what())
	return line[:min(len(line), MaxSubjectBytes)]
}

// Text is the alert for a person to act on: what, how many, since when, why, where to look, and what to type.
func (a Alert) Text() string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", label, text)
		}
	}
	b.WriteString(a.what() + a.meaning() + "\n")
	line("Where", a.Where.Name)
	if !a.Since.IsZero() {
		line("Since", clock(a.Since))
	}
	if len(a.Jobs) > 0 {
		line("Why", plain.Line(a.Jobs[0].Reason))
		line("Jobs", a.names())
	}
	for _, c := range a.Commands() {
		line(c.For, c.Line)
	}
	line("Page", a.Link())
	line("Runbook", a.RunbookLink())
	return b.String()
}

func (a Alert) what() string {
	jobs := "a job"
	if a.Count > 1 {
		jobs = fmt.Sprintf("%d jobs", a.Count)
	}
	if a.Workflow != "" {
		jobs += " of " + a.Workflow
	}
	at := ""
	if a.Step != "" {
		at = " at " + a.Step
	}
	switch {
	case a.Kind == AlertAgent:
		return "no process claims the tasks of agent " + a.Agent
	case a.Kind == AlertPaused:
		return "agent " + a.Agent + " is paused by the breaker, since its attempts fail"
	case a.Kind == AlertLate:
		return jobs + " will be late" + at
	case a.ErrorKind != "":
		return fmt.Sprintf("%s stopped%s (%s)", jobs, at, a.ErrorKind)
	default:
		return jobs + " stopped" + at
	}
}

// meaning explains the consequences to a reader that has never seen an alert.
func (a Alert) meaning() string {
	switch a.Kind {
	case AlertAgent:
		return ". They wait, and are sent again; jobs with them stand still."
	case AlertPaused:
		return ". Jobs that come to it stand still and are not undone; one at a time tries whether it is well again, and then all go on."
	case AlertLate:
		return fmt.Sprintf(": expected by %s, and not done by then unless a person helps.", clock(a.firstExpected()))
	default:
		return ", and will not go on until a person says so."
	}
}

func (a Alert) firstExpected() (first time.Time) {
	for _, j := range a.Jobs {
		if first.IsZero() || j.ExpectBy.Before(first) {
			first = j.ExpectBy
		}
	}
	return first
}

func (a Alert) names() string {
	names := make([]string, len(a.Jobs))
	for i, j := range a.Jobs {
		names[i] = j.ID
	}
	text := strings.Join(names, ", ")
	if more := a.Count - len(names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Command is a line to type, and what for.
type Command struct{ For, Line string }

// Commands are what to type, in this order.
func (a Alert) Commands() []Command {
	makegood := func(words ...string) string {
		line := "makegood " + strings.Join(words, " ")
		if a.Where.Flags != "" {
			line += " " + a.Where.Flags
		}
		return line
	}
	look := makegood("list", a.filter())
	if a.Count == 1 && len(a.Jobs) == 1 {
		look = makegood("get", a.Jobs[0].ID)
	}
	switch a.Kind {
	case AlertAgent:
		return []Command{
			{"Look", makegood("list --agent", a.Agent)},
			{"Type", "start what runs agent " + a.Agent + ", or let its tasks wait: " + makegood("pause --whole-agent", a.Agent, "--reason '...'")},
		}
	case AlertPaused:
		return []Command{{"Look", makegood("holds")}, {"Type", makegood("resume --whole-agent", a.Agent) + " (if it is well, and you cannot wait)"}}
	case AlertLate:
		return []Command{{"Look", look}}
	default:
		again := makegood("resubmit", a.filter(), "--reason '...'")
		if a.Count == 1 && len(a.Jobs) == 1 {
			again = makegood("resubmit", a.Jobs[0].ID, "--reason '...'")
		}
		return []Command{{"Look", look}, {"Type", again + " (when the cause is gone)"}}
	}
}

// filter are the flags by which the jobs of the alert are found.
func (a Alert) filter() string {
	var flags []string
	for _, f := range a.filters() {
		flags = append(flags, "--"+f[0]+" "+quoted(f[1]))
	}
	return strings.Join(flags, " ")
}

func (a Alert) filters() (all [][2]string) {
	if a.Kind == AlertStopped {
		all = append(all, [2]string{"state", "Error"})
	}
	for _, f := range [][2]string{{"workflow", a.Workflow}, {"step", a.Step}, {"reason-kind", a.ErrorKind}} {
		if f[1] != "" {
			all = append(all, f)
		}
	}
	return all
}

// Link leads to the page: to a single job, or to the list of several; empty: the page's URL is unknown.
func (a Alert) Link() string {
	switch {
	case a.Where.Page == "":
		return ""
	case a.Agent != "":
		return a.Where.Page + "/agents"
	case a.Count == 1 && len(a.Jobs) == 1:
		return a.Where.Page + "/jobs/" + url.PathEscape(a.Jobs[0].ID)
	}
	query := url.Values{}
	for _, f := range a.filters() {
		query.Set(f[0], f[1])
	}
	return a.Where.Page + "/?" + query.Encode()
}

// RunbookLink leads to the section of the runbook.
func (a Alert) RunbookLink() string {
	return cmp.Or(a.Where.Runbook, DefaultRunbook) + "#" + string(a.Kind)
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// quoted is a word as a shell takes it.
func quoted(word string) string {
	bare := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._:-", r))
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !bare(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(plain.Line(word), "'", `'\''`) + "'"
}
