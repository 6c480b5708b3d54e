package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"time"
)

// quick writes a message without reflection, byte for byte as encode does: encoding/json allocates for each time and
// each value, and most messages are tasks and successes. It writes only those that have no rare field.
type quick struct {
	out bytes.Buffer
	// odd: a value needs an escape, or has an error. Then encode writes the message, or says what is wrong with it.
	odd bool
}

// quicks are those to use again. One that has written a message of more than maxRememberedBytes is not kept.
var quicks = sync.Pool{New: func() any { return new(quick) }}

// written returns the message that write writes, from the head on.
func written(h head, write func(q *quick)) (body string, ok bool) {
	q := quicks.Get().(*quick)
	q.out.Reset()
	q.odd = false
	q.out.WriteString(`{"v":`)
	q.integer(int64(h.V))
	q.text("type", h.Type)
	write(q)
	q.out.WriteByte('}')
	if !q.odd {
		body = acceptable(q.out.String())
	}
	odd := q.odd
	if q.out.Cap() <= maxRememberedBytes {
		quicks.Put(q)
	}
	return body, !odd
}

// quickly writes a task that has neither secrets nor an undo, and is no batch.
func (m *task) quickly() (body string, ok bool) {
	if m.Secrets != nil || m.Undo != nil || m.Batch != nil {
		return "", false
	}
	return written(m.head, func(q *quick) {
		q.text("job", m.Job)
		q.text("workflow", m.Workflow)
		q.text("step", m.Step)
		q.number("round", int64(m.Round))
		q.number("attempt", int64(m.Attempt))
		q.text("agent", m.Agent)
		q.text("action", m.Action)
		q.value("input", m.Input)
		q.text("key", m.Key)
		q.time("sentAt", m.SentAt)
		q.time("startBy", m.StartBy)
		q.number("timeoutMs", m.TimeoutMs)
		q.orNumber("totalMs", m.TotalMs)
		q.flag("exclusive", m.Exclusive)
		q.orTime("completeBy", m.CompleteBy)
		q.text("replyTo", m.ReplyTo)
		q.text("birth", m.Birth)
		q.time("claimUntil", m.ClaimUntil)
		q.text("token", m.Token)
		q.orText("completion", m.Completion)
		if m.Alone {
			q.flag("alone", true)
		}
		q.orText("traceparent", m.Traceparent)
	})
}

// quickly writes an event that has only what a success has.
func (m *event) quickly() (body string, ok bool) {
	if m.Error != nil || !m.Key.IsZero() || !m.Deadline.IsZero() || m.Completion != "" || m.Request != "" {
		return "", false
	}
	return written(m.head, func(q *quick) {
		q.text("job", m.Job)
		q.orText("step", m.Step)
		q.orNumber("attempt", int64(m.Attempt))
		q.orText("token", m.Token)
		q.orText("lockedBy", m.LockedBy)
		q.orTime("startedAt", m.StartedAt)
		if len(m.Output) > 0 {
			q.value("output", m.Output)
		}
		if len(m.Spent) > 0 {
			q.value("spent", m.Spent)
		}
	})
}

func (q *quick) name(name string) {
	q.out.WriteString(`,"`)
	q.out.WriteString(name)
	q.out.WriteString(`":`)
}

func (q *quick) integer(n int64) {
	q.out.Write(strconv.AppendInt(q.out.AvailableBuffer(), n, 10))
}

func (q *quick) number(name string, n int64) {
	q.name(name)
	q.integer(n)
}

func (q *quick) flag(name string, value bool) {
	q.name(name)
	q.out.Write(strconv.AppendBool(q.out.AvailableBuffer(), value))
}

func (q *quick) text(name, value string) {
	q.name(name)
	q.odd = q.odd || !plain(value)
	q.out.WriteByte('"')
	q.out.WriteString(value)
	q.out.WriteByte('"')
}

func (q *quick) time(name string, t time.Time) {
	q.name(name)
	q.out.WriteByte('"')
	text, err := t.AppendText(q.out.AvailableBuffer())
	q.odd = q.odd || err != nil
	q.out.Write(text)
	q.out.WriteByte('"')
}

func (q *quick) value(name string, value json.RawMessage) {
	q.name(name)
	if value == nil {
		q.out.WriteString("null")
		return
	}
	q.odd = q.odd || json.Compact(&q.out, value) != nil
}

func (q *quick) orText(name, value string) {
	if value != "" {
		q.text(name, value)
	}
}

func (q *quick) orNumber(name string, n int64) {
	if n != 0 {
		q.number(name, n)
	}
}

func (q *quick) orTime(name string, t time.Time) {
	if !t.IsZero() {
		q.time(name, t)
	}
}

// plain reports whether JSON writes a text as it is.
func plain(text string) bool {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}
