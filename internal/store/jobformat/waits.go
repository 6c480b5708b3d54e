package jobformat

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// waits writes the waiting of an activity, and the completion that came from outside. It stays with the job, because it
// decides whether an answer is the same again.
func (w *writer) waits(a *job.Activity, epoch int64) {
	if a.Wait != nil {
		w.message(actWait, encodeWait(*a.Wait, epoch))
	}
	if a.Completion != nil {
		w.message(actCompletion, encodeCompletion(*a.Completion))
	}
	w.flag(actAlone, a.Alone)
}

func encodeWait(of job.Wait, epoch int64) []byte {
	var w writer
	w.time(waitDeadline, of.Deadline, epoch)
	w.int(waitAsked, of.Asked)
	w.int(waitHeard, of.Heard)
	w.int(waitTries, of.Tries)
	w.time(waitAskAt, of.AskAt, epoch)
	w.uint(waitFor, uint64(of.For))
	w.kept(of.Kept)
	return w.out
}

func encodeCompletion(c job.Completion) []byte {
	var w writer
	w.text(completionAnswer, c.Answer)
	w.text(completionRequest, c.Request)
	w.text(completionBy, c.By)
	w.flag(completionHeld, c.Held)
	w.flag(completionEarly, c.Early)
	w.bytes(completionInline, c.Output.Inline)
	w.text(completionRef, c.Output.Ref)
	w.size(completionBytes, c.Output)
	if c.Error != nil {
		w.message(completionError, encodeError(*c.Error))
	}
	w.text(completionWhy, c.Why)
	w.kept(c.Kept)
	return w.out
}

// waits reads what writer.waits wrote.
func (r *activityReader) waits(f *field, epoch int64) bool {
	switch f.num {
	case actWait:
		r.Wait = readWait(f, epoch)
	case actCompletion:
		r.Completion = readCompletion(f)
	case actAlone:
		r.Alone = f.flag()
	default:
		return false
	}
	return true
}

func readWait(f *field, epoch int64) *job.Wait {
	var w job.Wait
	w.Kept = f.message(func(f *field) bool {
		switch f.num {
		case waitDeadline:
			w.Deadline = f.time(epoch)
		case waitAsked:
			w.Asked = f.int()
		case waitHeard:
			w.Heard = f.int()
		case waitTries:
			w.Tries = f.int()
		case waitAskAt:
			w.AskAt = f.time(epoch)
		case waitFor:
			w.For = makegood.Duration(f.uint())
		default:
			return false
		}
		return true
	})
	return &w
}

func readCompletion(f *field) *job.Completion {
	var c job.Completion
	sized := false
	c.Kept = f.message(func(f *field) bool {
		switch f.num {
		case completionAnswer:
			c.Answer = f.text()
		case completionRequest:
			c.Request = f.text()
		case completionBy:
			c.By = f.text()
		case completionHeld:
			c.Held = f.flag()
		case completionEarly:
			c.Early = f.flag()
		case completionInline:
			c.Output.Inline = f.copied()
		case completionRef:
			c.Output.Ref = f.text()
		case completionBytes:
			c.Output.Bytes, sized = f.int(), true
		case completionError:
			c.Error = readError(f)
		case completionWhy:
			c.Why = f.text()
		default:
			return false
		}
		return true
	})
	if !sized {
		c.Output.Bytes = len(c.Output.Inline)
	}
	return &c
}
