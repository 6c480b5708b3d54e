package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// lies is what an agent does that writes what is not so into the items that it may write.
	lies = "lie"
	// forged is in whatever a stranger says.
	forged = "forged"
	// strangers is how many messages a stranger sends who can send to the events queue, and saw what is in the table.
	strangers = 12
)

// poison is what is in messages that end in quarantine.
var poison = []string{"Nonsense", "Interrupted", "AttemptClosed", "DispatchRefused", "Requested", "Told"}

// lie writes a claim that cannot be true: of an attempt that was never made, or for much longer than the step allows.
// What becomes of the liar's own attempt is left to them; the job must come to its end.
func (a remote) lie(r *rand.Rand, task makegood.Task) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.w.over || task.Shared {
		return
	}
	a.w.referee(task.Job).Lied()
	slot := store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
	claim := job.Claim{
		Attempt: task.Attempt + r.IntN(3), LockedBy: "liar:" + a.name + on(task.Job, task.Step, task.Attempt),
		StartedAt: domain.Instant(time.Now()), CompleteBy: domain.Instant(time.Now().Add(pick(r, task.Timeout.Std(), 4*time.Hour, 20*24*time.Hour))),
	}
	a.w.writer, a.w.doing = a.life, lies
	var err error
	if claim.Attempt == task.Attempt {
		claim.LockedBy = a.w.store.InSlot(slot).LockedBy
		_, err = a.w.store.Heartbeat(context.Background(), slot, claim, task.ClaimUntil)
		a.w.leases[claim.LockedBy] = lasts{until: a.w.start.Add(2 * endsWithin)} // It keeps to nothing.
	} else {
		err = a.w.store.Claim(context.Background(), slot, claim, task.ClaimUntil)
	}
	a.w.writer, a.w.doing = nil, ""
	a.w.note(a.name, fmt.Sprintf("lies: attempt %d of %s until %s%s", claim.Attempt, task.Step, claim.CompleteBy.Sub(a.w.start), answer(err)))
}

// strange lets somebody who is not an agent send what they can think of to the events queue. w.mu is held.
func (w *world) strange() {
	r := w.chance.of("stranger")
	at := time.Duration(0)
	for n := range strangers {
		if at += between(r, time.Second, faultsLast/strangers); !w.faults.strikes(Stranger, strconv.Itoa(n)) {
			continue
		}
		w.after(at, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if body := w.forge(w.chance.of("forged", strconv.Itoa(n))); body != "" && !w.over {
				w.note("stranger", body)
				_ = w.queues[eventsQueue].put("stranger", queue.Message{Body: body})
			}
		})
	}
}

// forge makes a message about a job that is under way. It has all that can be known but a token.
func (w *world) forge(r *rand.Rand) string {
	jobs := w.store.All()
	if len(jobs) == 0 {
		return ""
	}
	j := pick(r, jobs...)
	step := pick(r, j.Steps...)
	reply := job.Reply{
		Step: step.Name, Attempt: max(1, step.Attempt), LockedBy: w.store.latestOf(j, step.Name).LockedBy,
		Token: pick(r, "", "1.AAAAAAAAAAAAAAAAAAAAAA", machine.Token(j, step.Name, step.Attempt-1), machine.Token(j, step.Name+"x", step.Attempt)),
	}
	var event job.Event
	switch r.IntN(5) {
	case 0:
		event = job.StepSucceeded{Reply: reply, Output: wire.Inline(fmt.Appendf(nil, `{"a":%d,"forged":true}`, reply.Attempt))}
	case 1:
		event = job.StepFailed{Reply: reply, Error: job.StepError{Message: forged, Applied: makegood.AppliedNo}}
	case 2:
		event = job.DeadlinePassed{Key: pick(r, time.Time{}, domain.Instant(time.Now()), j.CompleteBy)}
	case 3:
		event = job.Submitted{}
	default:
		return fmt.Sprintf(`{"v":1,"type":%q,"job":%q,"step":%q,"attempt":%d}`, pick(r, poison[1:]...), j.ID, step.Name, reply.Attempt)
	}
	body, err := wire.EncodeEvent(j.ID, event)
	if err != nil {
		panic(err)
	}
	return body
}
