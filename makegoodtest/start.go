package makegoodtest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Running is a job that a test goes through by hand. One goroutine may use it, that of the bubble.
type Running struct {
	t *testing.T
	w *world
	// asked numbers the requests.
	asked int
}

// Start begins a job, and lets all immediate effects happen. It must be called inside a bubble of testing/synctest,
// where the clock stands still until AdvanceTime, Wait or the test lets it go on:
//
//	synctest.Test(t, func(t *testing.T) {
//		job := makegoodtest.Start(t, order)
//		job.AdvanceTime(time.Minute)
//		if err := job.Request(makegood.VerbCancel); err != nil { ... }
//		if end := job.Wait(); end.ProcessState != makegood.JobCancelled { ... }
//	})
//
// Everything is stopped at the end of the bubble.
func Start(t *testing.T, c Case) *Running {
	t.Helper()
	if !inBubble() {
		t.Fatal("makegoodtest.Start is called outside of a bubble: call it inside synctest.Test")
	}
	r := &Running{t: t, w: newWorld(t, c)}
	r.w.open(faults{})
	r.w.submit()
	synctest.Wait()
	return r
}

// inBubble reports whether the caller is in a bubble, which testing/synctest says by a panic only.
func inBubble() (in bool) {
	defer func() { in = recover() == nil }()
	synctest.Wait()
	return true
}

// AdvanceTime lets d pass, with all that falls due meanwhile.
func (r *Running) AdvanceTime(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Job returns the job as it is now.
func (r *Running) Job() Job {
	r.t.Helper()
	job, err := r.w.job()
	if err != nil {
		r.t.Fatal(err)
	}
	return job
}

// Request makes a request of the job, as an operator does, and lets all immediate effects happen. The error is the
// reason of a refusal.
func (r *Running) Request(verb makegood.Verb) error {
	r.asked++
	_, err := r.w.engine.Jobs(byTest, nil).Request(context.Background(), JobID, api.Request{Verb: verb, Name: fmt.Sprint(r.asked)})
	synctest.Wait()
	return refusal(string(verb), err)
}

// Kill kills the engine as it is, starts it again, and lets all immediate effects happen.
func (r *Running) Kill() {
	r.t.Helper()
	r.w.noteSuffered("the engine was killed")
	r.w.close()
	r.w.open(faults{})
	r.w.submit()
	synctest.Wait()
}

// Wait lets time pass until the job has ended, asks Check, and returns the job. The test fails, at once, when
// the job has not ended Within the time of its Case.
func (r *Running) Wait() Job {
	r.t.Helper()
	r.w.untilEnd(r.w.c.within())
	job, err := r.w.verdict()
	if err != nil {
		r.t.Fatal(r.w.report(err))
	}
	return job
}
