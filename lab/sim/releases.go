package sim

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// Some worlds are in the middle of a deployment: their processes are of two releases. The newer one is the shipped code
// that adds fields to what it stores and sends, and needs its own level for some jobs; the older one is the shipped
// code as it is. When all is well again, the deployment is done.

const (
	// laterField is the number of a field that no release knows (job.proto).
	laterField = 600
	// laterLevel is the level of the newer release.
	laterLevel = jobformat.Level + 1
)

// later is what a newer release writes into a place of its own.
func later(text string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, laterField, protowire.BytesType), text))
}

// newer reports whether a process is of the newer release. w.mu is held.
func (l *life) newer() bool { return l.release || l.w.mixed && l.w.faults.over }

// writes returns a job as the process stores it.
func (l *life) writes(j job.Job) job.Job {
	if !l.w.mixed {
		return j
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if !l.newer() {
		return j
	}
	j = j.Clone()
	mark := later(strconv.FormatInt(j.Rev, 10))
	j.Kept = mark
	if oneIn(l.w.chance.of("needs", j.ID), 6) {
		j.Needs = laterLevel
	}
	for i := range j.Untold {
		j.Untold[i].Kept = mark
	}
	if j.Changes.Seq > 0 {
		j.Changes.Kept = mark
	}
	for i := range j.Changes.Pending {
		j.Changes.Pending[i].Kept = mark
	}
	for i := range j.Steps {
		s := &j.Steps[i]
		s.Kept = mark
		for _, a := range []*job.Activity{&s.Forward, &s.Undo} {
			if a.Attempt > 0 {
				a.Kept = mark
			}
		}
	}
	return j
}

// reads returns a stored job as the process reads it: written and read again, and with store.ErrNewer where an older
// release must leave it alone.
func (l *life) reads(j job.Job) (job.Job, error) {
	if !l.w.mixed {
		return j, nil
	}
	read, err := jobformat.DecodeWhole(jobformat.Encode(j, jobformat.Apart{}))
	if err != nil && !errors.Is(err, store.ErrNewer) {
		l.w.violate(j.ID, "law 12: job %s cannot be read: %v", j.ID, err)
		return j, err
	}
	read.ID, read.Workflow, read.ProcessState, read.FailureCount = j.ID, j.Workflow, j.ProcessState, j.FailureCount
	read.LockedBy, read.CompleteBy, read.Rev = j.LockedBy, j.CompleteBy, j.Rev
	if l.newer() {
		return read, nil
	}
	return read, jobformat.Newer(read)
}

// says returns messages as the process sends them.
func (l *life) says(messages []queue.Message) []queue.Message {
	if !l.w.mixed {
		return messages
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if !l.newer() {
		return messages
	}
	all := make([]queue.Message, len(messages))
	for i, m := range messages {
		if !left(m) {
			m.Body = strings.Replace(m.Body, "{", `{"later":{"v":1},`, 1)
		}
		all[i] = m
	}
	return all
}

// leaves notes that the process sends again what it was given, to a newer one.
func (l *life) leaves(m queue.Message) {
	in, err := l.w.reading.event(m.Body)
	if err != nil || in.Event == nil {
		return
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.passedOn[in.Job+" "+in.Event.Cause()] = true
}

// left reports whether a message was left by an older release: it says so at its very front.
func left(m queue.Message) bool { return strings.HasPrefix(m.Body, `{"leftSince"`) }

// releases: what an older release writes back has all that a newer one wrote, and it writes no job that it must leave.
func (c change) releases() {
	if !c.mixed || c.before.Rev == 0 || c.writer == nil || c.writer.newer() {
		return
	}
	if c.before.Needs > jobformat.Level {
		c.wrong("law 12: a process decides that must not, by a %s", c.doing)
	}
	kept := func(what, before, after string) {
		if before != after {
			c.wrong("law 12: %s had %q of a newer release, and has %q", what, before, after)
		}
	}
	kept("it", c.before.Kept, c.after.Kept)
	kept("what it says of changes", c.before.Changes.Kept, c.after.Changes.Kept)
	for _, s := range c.after.Steps {
		before, stays := c.before.Step(s.Name)
		if !stays {
			continue
		}
		kept("step "+s.Name, before.Kept, s.Kept)
		kept("step "+s.Name+", forward", before.Forward.Kept, s.Forward.Kept)
		kept("step "+s.Name+", undo", before.Undo.Kept, s.Undo.Kept)
	}
	for _, before := range c.before.Untold {
		for _, after := range c.after.Untold {
			if before.Seq == after.Seq {
				kept("announcement "+strconv.Itoa(after.Seq), before.Kept, after.Kept)
			}
		}
	}
}
