package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// words are the functions of templates.
func words() template.FuncMap {
	return template.FuncMap{
		"count": count, "many": many, "span": span, "clock": clock, "stamp": stamp, "day": day, "lower": lower, "short": short,
		"prose": prose, "since": sinceNow, "until": untilThen, "hasView": hasView, "list": func(values ...any) []any { return values }, "pretty": pretty, "deref": deref, "number": number, "retry": domain.RetryText, "whose": whose, "items": domain.ItemsText, "limited": protocol.LimitText,
	}
}

// whose returns the job, and its step, that a job works for, as its id says; nil: the job was submitted.
func whose(id string) *domain.Child {
	if child, is := domain.ChildOf(id); is {
		return &child
	}
	return nil
}

// lower is a name of the product as a class of the style sheet.
func lower(name any) string { return strings.ToLower(fmt.Sprint(name)) }

// count writes a number with commas: 184,326.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// many writes a number of things: 1 job, 12 jobs.
func many(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") {
		return count(n) + " " + one + "es"
	}
	return count(n) + " " + one + "s"
}

// span writes a duration by its two largest parts: 12 ms, 0.4 s, 27 s, 2 m 27 s, 2 h 04 m, 3 d 4 h.
func span(d time.Duration) string {
	d = max(d, 0)
	switch seconds := int(d / time.Second); {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", float64(d/(100*time.Millisecond))/10)
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 10*60:
		return fmt.Sprintf("%d m %02d s", seconds/60, seconds%60)
	case seconds < 3600:
		return fmt.Sprintf("%d m", seconds/60)
	case seconds < 24*3600:
		return fmt.Sprintf("%d h %02d m", seconds/3600, seconds/60%60)
	default:
		return fmt.Sprintf("%d d %d h", seconds/(24*3600), seconds/3600%24)
	}
}

// sinceNow writes how long ago a time is.
func sinceNow(at any, now time.Time) string {
	return timeText(at, func(t time.Time) string { return span(now.Sub(t)) })
}

// untilThen writes how long it is until a time.
func untilThen(at any, now time.Time) string {
	return timeText(at, func(t time.Time) string { return span(t.Sub(now)) })
}

// timeText writes a time; empty: it is not there.
func timeText(at any, write func(t time.Time) string) string {
	t, there := instant(at)
	if !there {
		return ""
	}
	return write(t)
}

// instant is a time that is there, by value or by pointer.
func instant(at any) (time.Time, bool) {
	switch at := at.(type) {
	case time.Time:
		return at.UTC(), !at.IsZero()
	case *time.Time:
		if at != nil {
			return at.UTC(), !at.IsZero()
		}
	}
	return time.Time{}, false
}

// stamp writes a time for programs; empty: there is none.
func stamp(at any) string {
	return timeText(at, func(t time.Time) string { return t.Format(time.RFC3339Nano) })
}

// clock writes a time of the day as seen now: with its day where that is another one.
func clock(at any, now time.Time) string {
	t, there := instant(at)
	switch {
	case !there:
		return ""
	case t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly):
		return t.Format("15:04:05")
	case t.Year() == now.UTC().Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// A moment within a sentence stands between these two, until prose makes an element that the script can show in local
// time.
const momentFrom, momentTo = "\x02", "\x03"

// moment writes a time within a sentence that a template writes by prose.
func moment(at any) string { return momentFrom + stamp(at) + momentTo }

// moments finds moments within a sentence.
var moments = regexp.MustCompile(momentFrom + `[0-9TZ:.+-]{1,40}` + momentTo)

// prose writes a sentence as HTML, its moments as elements. Quoted text that only looks like a moment stays as it is.
func prose(text string, now time.Time) template.HTML {
	var b strings.Builder
	rest := text
	for _, at := range moments.FindAllString(text, -1) {
		before, after, _ := strings.Cut(rest, at)
		b.WriteString(template.HTMLEscapeString(before))
		if t, err := time.Parse(time.RFC3339Nano, strings.Trim(at, momentFrom+momentTo)); err == nil {
			fmt.Fprintf(&b, `<time datetime="%s" title="%s UTC">%s</time>`, stamp(t), day(t), clock(t, now))
		} else {
			b.WriteString(template.HTMLEscapeString(at))
		}
		rest = after
	}
	b.WriteString(template.HTMLEscapeString(rest))
	return template.HTML(b.String()) //nolint:gosec // every part of others is escaped
}

// day writes a time in full.
func day(at any) string {
	return timeText(at, func(t time.Time) string { return t.Format("2 Jan 2006 15:04:05") })
}

// short is the beginning of a hash.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// number is the one behind a pointer.
func number(n *int) int { return *n }

// deref is the text behind a pointer; empty: there is none.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// pretty indents JSON; other text stays as it is.
func pretty(value json.RawMessage) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if len(value) == 0 || e.Encode(value) != nil {
		return string(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mark is how a state is shown: its name, and the shape and colour, which are a class and a symbol of that name.
type mark struct{ Name, Shape string }

// markOf returns the mark of a job: Paused and Waiting are shown in place of the state below.
func markOf(state makegood.ProcessState, paused, waits bool) mark {
	switch {
	case state.Finished() || state == makegood.JobError:
	case paused:
		return mark{Name: "Paused", Shape: "paused"}
	case waits && state != makegood.JobUndoing:
		return mark{Name: "Waiting", Shape: "waiting"}
	}
	return mark{Name: string(state), Shape: lower(state)}
}
