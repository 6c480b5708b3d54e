package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// poisonWithReason reports whether an error says that a message is poison, and why.
func poisonWithReason(err error) bool {
	return errors.Is(err, ErrPoison) && len(err.Error()) > len(ErrPoison.Error())+len(": ")
}

// leavable fails the test unless a message of a newer release is one still after it was left, twice, with the same fields.
func leavable(t *testing.T, body string, decode func(string) error) {
	t.Helper()
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	left, _ := Leave(body, first)
	again, since := Leave(left, first.Add(time.Hour))
	if len(left) > limits.MaxMessageBytes {
		return
	}
	if err := decode(left); !errors.Is(err, ErrNewer) || again != left || since.After(first) {
		t.Errorf("%.300q\nwas left as %.300q, %v, and then as %.300q since %s", body, left, err, again, since)
	}
	var had, has map[string]any
	if err := errors.Join(json.Unmarshal([]byte(body), &had), json.Unmarshal([]byte(left), &has)); err != nil {
		t.Fatal(err)
	}
	delete(had, "leftSince")
	delete(has, "leftSince")
	if !reflect.DeepEqual(has, had) {
		t.Errorf("%.300q\nwas left with other fields: %.300q", body, left)
	}
}

// sendable fails the test unless SQS would take what was encoded. What was read at its limit may be
// larger when written, and then its sender is told.
func sendable(t *testing.T, body string) {
	t.Helper()
	if err := queue.Check(queue.Message{Body: body}); err != nil && !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("encoded as what no queue takes: %v: %.200q", err, body)
	}
}

func FuzzIncoming(f *testing.F) {
	f.Add(`{"v":1,"type":"Submitted","job":"j"}`)
	f.Add(`{"v":1,"type":"ScheduleDue","schedule":"s","key":"9999-12-31T23:59:59-01:00"}`)
	f.Add(`{"v":1,"type":"HoldsDue","key":"9999-12-31T23:59:59-01:00"}`)
	f.Add(`{"v":1,"type":"StepHeld","job":"j","step":"s","attempt":1,"token":"1.x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := DecodeIncoming(body)
		if errors.Is(err, ErrNewer) {
			leavable(t, body, func(body string) error { _, err := DecodeIncoming(body); return err })
			return
		}
		if err != nil {
			if !poisonWithReason(err) {
				t.Errorf("got %v, want poison with its reason", err)
			}
			return
		}
		if failed, ok := in.Event.(job.StepFailed); ok && failed.Error.RetryAfter < 0 {
			t.Errorf("%.300q\nwas read as %+v, which is to be tried again before it failed", body, failed)
		}
		var written string
		switch {
		case in.Submit != nil:
			written, err = EncodeSubmit(*in.Submit)
		case in.HoldsDue != nil:
			written, err = EncodeHoldsDue(*in.HoldsDue)
		case in.Schedule != nil:
			written, err = EncodeScheduleDue(*in.Schedule)
		default:
			written, err = EncodeEvent(in.Job, in.Event)
		}
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		sendable(t, written)
		again, err := DecodeIncoming(written)
		if in.Submit != nil && again.Submit != nil {
			// White space in an input is not kept.
			in.Submit.Input, again.Submit.Input = Inline(in.Submit.Input).Inline, Inline(again.Submit.Input).Inline
		}
		if err != nil || !reflect.DeepEqual(again, in) {
			t.Errorf("%.300q\nwas read as  %+v\nand again as %+v, %v", body, in, again, err)
		}
	})
}

func FuzzTask(f *testing.F) {
	f.Add(`{"v":1,"type":"Task","job":"j"}`)
	f.Fuzz(func(t *testing.T, body string) {
		task, err := DecodeTask(body)
		if errors.Is(err, ErrNewer) {
			leavable(t, body, func(body string) error { _, err := DecodeTask(body); return err })
			return
		}
		if err != nil {
			if !poisonWithReason(err) {
				t.Errorf("got %v, want poison with its reason", err)
			}
			return
		}
		written, err := EncodeTask(task)
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		sendable(t, written)
		again, err := DecodeTask(written)
		// White space in payloads is not kept.
		task.Input, again.Input = Inline(task.Input).Inline, Inline(again.Input).Inline
		if task.Undo != nil && again.Undo != nil {
			task.Undo.Output, again.Undo.Output = Inline(task.Undo.Output).Inline, Inline(again.Undo.Output).Inline
		}
		if err != nil || !reflect.DeepEqual(again, task) {
			t.Errorf("%.300q\nwas read as  %+v\nand again as %+v, %v", body, task, again, err)
		}
	})
}

func FuzzAnnouncement(f *testing.F) {
	f.Add(`{"v":1,"type":"Announcement","job":"a","workflow":"b","seq":1,"processState":"Processed","reason":"","at":"1970-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, body string) {
		job, workflow, a, err := DecodeAnnouncement(body)
		if errors.Is(err, ErrNewer) {
			return
		}
		if err != nil {
			if !poisonWithReason(err) {
				t.Errorf("got %v, want poison with its reason", err)
			}
			return
		}
		written, err := EncodeAnnouncement(job, workflow, a)
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		sendable(t, written)
		sameJob, sameWorkflow, same, err := DecodeAnnouncement(written)
		if err != nil || sameJob != job || sameWorkflow != workflow || !reflect.DeepEqual(same, a) {
			t.Errorf("%.300q\nwas read as  %+v\nand again as %+v, %v", body, a, same, err)
		}
	})
}
