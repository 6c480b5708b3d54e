// Package protocol has the parts that clients and servers of the API share, and that no user's program calls: the
// parameters of a filter, the facets, the reading of pages, the watching of a job, ids of jobs, and the outputs of a
// stack.
package protocol

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Pages returns the jobs of all pages, for a Reader of any source. An error ends it.
func Pages(read func(cursor string) (api.Page, error)) iter.Seq2[api.Listed, error] {
	return func(yield func(api.Listed, error) bool) {
		for cursor := ""; ; {
			page, err := read(cursor)
			if err != nil {
				yield(api.Listed{}, err)
				return
			}
			for _, job := range page.Jobs {
				if !yield(job, nil) {
					return
				}
			}
			if cursor = page.Cursor; cursor == "" {
				return
			}
		}
	}
}

// WaitFor implements Wait by Watch and Get, for a Reader of any source.
func WaitFor(ctx context.Context, jobs api.Reader, id string) (makegood.Job, error) {
	for _, err := range jobs.Watch(ctx, id) {
		if err != nil {
			return makegood.Job{}, err
		}
	}
	return jobs.Get(ctx, id)
}

// firstLook and longestLook are the pauses between two looks of Polled at a job.
const firstLook, longestLook = 20 * time.Millisecond, time.Second

// Polled implements Watch by polling, at intervals that grow up to a second while the job does not change. J is a
// makegood.Job, or one with further fields, whose changes count too.
func Polled[J interface{ AtEnd() bool }](ctx context.Context, id string, look func(context.Context, string) (J, error)) iter.Seq2[J, error] {
	return func(yield func(J, error) bool) {
		pause, last := firstLook, ""
		for {
			job, err := look(ctx, id)
			if err != nil {
				yield(job, err)
				return
			}
			if now := fingerprint(job); now != last {
				pause, last = firstLook, now
				if !yield(job, nil) {
					return
				}
			}
			if job.AtEnd() {
				return
			}
			select {
			case <-ctx.Done():
				yield(job, fmt.Errorf("watch job %s: %w", id, context.Cause(ctx)))
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, longestLook)
		}
	}
}

// fingerprint distinguishes two looks at a job.
func fingerprint(job any) string {
	text, err := json.Marshal(job)
	if err != nil {
		panic(fmt.Sprintf("protocol: a job cannot be written: %v", err))
	}
	return string(text)
}

// NewJobID makes an id that sorts by time: 12 hex digits of milliseconds, and 70 random bits.
func NewJobID(now time.Time) string {
	return fmt.Sprintf("%012x%s", now.UnixMilli(), strings.ToLower(rand.Text()[:14]))
}

// WhoHeader is the header with the name that a caller gives.
const WhoHeader = "Makegood-Who"

// Absent reports whether an agent outside has stopped asking for tasks for 30 seconds, and the time of its last
// request.
func Absent(a api.Agent, now time.Time) (since time.Time, absent bool) {
	if a.Polls == nil || a.Polls.Waiting > 0 {
		return time.Time{}, false
	}
	since = a.Polls.Since
	if a.Polls.LastAt != nil {
		since = *a.Polls.LastAt
	}
	return since, now.Sub(since) > limits.AbsentAfter
}

// LimitText describes the limit of an agent; empty: the hold is none.
func LimitText(h makegood.Hold) string {
	if h.Kind != makegood.HoldLimit {
		return ""
	}
	text, more := FiguresText(domain.LimitOf(h)), map[bool]string{true: " or more"}[h.AtLeast]
	if h.Limit > 0 {
		text += fmt.Sprintf(": %d under way", h.UnderWay)
	}
	return fmt.Sprintf("%s, %d%s wait", text, h.Jobs, more)
}

// FiguresText describes a limit that is complete, and no attempts.
func FiguresText(l makegood.Limit) string {
	text := "limit"
	if l.Rate != "" {
		text += fmt.Sprintf(" %s, %d at one moment", l.Rate, l.Burst)
	}
	if l.Concurrency > 0 {
		text += strings.Repeat(" and", min(len(l.Rate), 1)) + fmt.Sprintf(" %d", l.Concurrency)
	}
	if l.Key != "" {
		text += " for each " + l.Key
	}
	return text
}

// PauseText describes a pause that was not lifted, and when it ends or is tried by itself.
func PauseText(h makegood.Hold) string {
	switch {
	case h.NextAt == nil || h.ReleasedAt != nil:
		return "paused"
	case h.Tripped:
		probes := strings.TrimSuffix(fmt.Sprintf("%d probes", h.Probes), map[bool]string{true: "s"}[h.Probes == 1])
		return fmt.Sprintf("paused, %s so far, the next at %s", probes, h.NextAt.UTC().Format(time.RFC3339))
	}
	return "paused until " + h.NextAt.UTC().Format(time.RFC3339)
}

// PutAwayText describes a message, as far as its content is known.
func PutAwayText(p api.PutAway) string {
	what := p.Type
	if what == "" {
		what = fmt.Sprintf("%d bytes", len(p.Body))
	}
	if p.Job != "" {
		what += " of job " + p.Job
	}
	if p.Step != "" {
		what += fmt.Sprintf(", step %s, attempt %d", p.Step, p.Attempt)
	}
	return what
}
