package agentdoor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestOnlyAnAgentOutsideWithItsTokenIsAllowed(t *testing.T) {
	within(t, func(w *world) {
		w.is("one without a token", w.Allow("crane", ""), nil)
		w.is("one without a token, who shows one", w.Allow("crane", "x"), nil)
		w.is("its token", w.Allow("clerk", "s3cret"), nil)
		w.is("another token", w.Allow("clerk", "s3creT"), agentdoor.ErrToken)
		w.is("no token", w.Allow("clerk", ""), agentdoor.ErrToken)
		w.is("an agent that runs inside", w.Allow("bank", ""), agentdoor.ErrUnknown)
		_, err := w.Take(w.t.Context(), "bank", ask(""))
		w.is("taking for it", err, agentdoor.ErrUnknown)
	})
}

// What is given out is claimed by its holder, for as long as its timeout says, and gone from the queue.
func TestATaskThatIsGivenOutIsClaimed(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		w.wants("its holder", given.Claim.LockedBy, "outside:c-1:n1")
		w.wants("its attempt", given.Claim.Attempt, 3)
		w.wants("how long it may take", given.Claim.CompleteBy.Sub(given.Claim.StartedAt), time.Minute)
		w.wants("what is left of that", given.Left(), time.Minute)
		found, err := w.claims.Look(w.t.Context(), slot("lift"), 3, time.Now().Add(time.Hour), time.Now())
		check(w.t, err)
		w.wants("the store", fmt.Sprint(found.Finding, found.Claim.LockedBy, found.Claim.CompleteBy), fmt.Sprint(job.FoundHeld, given.Claim.LockedBy, given.Claim.CompleteBy))
		w.wants("the queue", w.depth(), queue.Depth{})
		time.Sleep(2 * time.Minute)
		w.wants("what is left after its end", given.Left(), time.Duration(0))
	})
}

// The clock of the wall may jump: what is left is counted on the other clock.
func TestWhatIsLeftOfATaskDoesNotFollowTheWallClock(t *testing.T) {
	within(t, func(w *world) {
		w.clock = time.Hour
		given := w.takes("lift", func(task *makegood.Task) { task.ClaimUntil = task.ClaimUntil.Add(time.Hour) })
		w.wants("its start", given.Claim.StartedAt, domain.Instant(time.Now().Add(time.Hour)))
		w.wants("what is left", given.Left(), time.Minute)
	})
}

// A shared task is given out as often as it comes, until its end, and nobody holds it; its item says that it was given away.
func TestASharedTaskIsGivenToEveryoneUntilItsEnd(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("count", shared)
		w.wants("its holder", given.Claim.LockedBy, "")
		w.wants("its time", given.Left(), time.Minute)
		found, err := w.claims.Look(w.t.Context(), slot("count"), 3, time.Now().Add(time.Hour), time.Now())
		check(w.t, err)
		w.wants("its item", found.Claim.LockedBy, job.OutsideShared)
		w.wants("the end in its item", found.Claim.CompleteBy.Sub(given.Claim.StartedAt), 2*time.Minute)
		task := w.task("count", shared)
		time.Sleep(90 * time.Second)
		w.send(task)
		again, err := w.Take(w.t.Context(), "crane", ask(""))
		check(w.t, err)
		if len(again) != 1 || again[0].Left() > 30*time.Second || again[0].Left() < 29*time.Second {
			w.t.Errorf("given again late: got %v, want what is left until its end, about 30 s", again)
		}
		time.Sleep(30 * time.Second)
		w.send(task)
		w.wants("at its end", w.take(ask("")), []string{})
		w.wants("the queue after it", w.depth(), queue.Depth{})
	})
}

// A task that another holds, or that came too late, is nobody's here, and does not come again. The asker waits on.
func TestATaskOfAnotherIsNotGivenOut(t *testing.T) {
	within(t, func(w *world) {
		w.takes("lift")
		w.send(w.task("lift"))
		w.wants("held by another", w.take(ask("")), []string{})
		w.wants("the queue", w.depth(), queue.Depth{})
		w.send(w.task("late", func(task *makegood.Task) { task.ClaimUntil = task.SentAt.Add(-time.Second) }))
		w.wants("too late", w.take(ask("")), []string{})
		w.wants("the queue after that", w.depth(), queue.Depth{})
		w.send(w.task("lift"))
		go func() {
			time.Sleep(5 * time.Second)
			w.send(w.task("turn"))
		}()
		w.wants("the next one", w.take(agentdoor.Ask{Instance: "c-1", Max: 10, Wait: 10 * time.Second}), []string{"turn"})
	})
}

// A claim that failed is tried again a second later; what cannot be read goes the way of the queue. Neither keeps the others.
func TestATaskThatCannotBeClaimedComesAgain(t *testing.T) {
	within(t, func(w *world) {
		w.claimErrs = []error{errDown}
		w.send(w.task("lift"), w.task("turn"))
		first := w.take(ask(""))
		if len(first) != 1 {
			w.t.Fatalf("got %v, want the one whose claim was written", first)
		}
		w.wants("when it comes again", w.returned, []time.Duration{time.Second})
		if !strings.Contains(w.log.String(), "could not be claimed") || !strings.Contains(w.log.String(), errDown.Error()) {
			w.t.Errorf("the log does not tell: %s", w.log)
		}
		w.wants("at once", w.take(ask("")), []string{})
		time.Sleep(time.Second)
		second := w.take(ask(""))
		all := append(first, second...)
		slices.Sort(all)
		w.wants("both", all, []string{"lift", "turn"})
		w.sendBody("no task")
		w.wants("no task", w.take(ask("")), []string{})
		w.wants("when that comes again", w.returned, []time.Duration{time.Second, time.Second})
	})
}

func TestTroubleOfTheQueueIsToldAndLosesNoTask(t *testing.T) {
	within(t, func(w *world) {
		w.receiveErr = errDown
		_, err := w.Take(w.t.Context(), "crane", ask(""))
		w.is("nothing can be received", err, errDown)
		w.receiveErr, w.deleteErr = nil, errDown
		w.takes("lift")
		w.returnErr, w.deleteErr, w.claimErrs = errDown, nil, []error{errDown}
		w.send(w.task("turn"))
		w.wants("not claimed", w.take(ask("")), []string{})
		for _, want := range []string{"tasks that were given out will come again", "tasks could not be given back"} {
			if strings.Count(w.log.String(), want) != 1 {
				w.t.Errorf("the log says %q %d times, want once: %s", want, strings.Count(w.log.String(), want), w.log)
			}
		}
	})
}

// Of a paused agent or workflow nothing is given out: the Scheduler is told, and holds the job. Where nobody knows, it is given.
func TestWhatIsPausedIsHeldAndNotGivenOut(t *testing.T) {
	within(t, func(w *world) {
		held, unknown := true, error(nil)
		w.use(func(c *agentdoor.Config) {
			c.Held = func(_ context.Context, t makegood.Task) (bool, error) {
				return held && t.Agent == "crane" && t.Workflow == "w" && t.Job == "j", unknown
			}
		})
		w.send(w.task("lift"))
		w.wants("paused", w.take(ask("")), []string{})
		w.wants("told", w.said, []string{"j: job.StepHeld of lift#3, 1.lift"})
		w.wants("the queue", w.depth(), queue.Depth{})
		w.replyErr = store.ErrNotFound
		w.send(w.task("lift"))
		w.wants("of a job that is gone", w.take(ask("")), []string{})
		w.wants("the queue of that", w.depth(), queue.Depth{})
		w.replyErr = errDown
		w.send(w.task("lift"))
		w.wants("the Scheduler cannot be told", w.take(ask("")), []string{})
		w.wants("it comes again", w.returned, []time.Duration{time.Second})
		time.Sleep(time.Second)
		held, unknown, w.replyErr = false, errDown, nil
		w.wants("nobody knows", w.take(ask("")), []string{"lift"})
		if !strings.Contains(w.log.String(), "given out without knowing whether it is paused") {
			w.t.Errorf("the log does not tell: %s", w.log)
		}
	})
}

// Stopping loses no task on its way: one that arrives as the asker goes, or the engine ends, is there for the next at once, unclaimed.
func TestStoppingAnAgentOutsideLosesNoTaskOnItsWay(t *testing.T) {
	for name, stop := range map[string]func(w *world, cancel func()){
		"the agent goes":  func(_ *world, cancel func()) { cancel() },
		"the engine ends": func(w *world, _ func()) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				ctx, cancel := context.WithCancel(w.t.Context())
				defer cancel()
				late := &lateReceiver{world: w, arrived: make(chan struct{}), deliver: make(chan struct{})}
				w.use(func(c *agentdoor.Config) { c.Receiver = late })
				w.send(w.task("lift"))
				type result struct {
					tasks []agentdoor.Task
					err   error
				}
				took := make(chan result)
				go func() {
					tasks, err := w.Take(ctx, "crane", agentdoor.Ask{Instance: "c-1", Max: 1, Wait: 10 * time.Second})
					took <- result{tasks, err}
				}()
				<-late.arrived
				stop(w, cancel)
				synctest.Wait()
				close(late.deliver)
				r := <-took
				w.wants("given to who is gone", len(r.tasks), 0)
				if name == "the engine ends" {
					w.is("what it is told", r.err, agentdoor.ErrClosed)
				} else {
					w.is("what it is told", r.err, nil)
				}
				w.wants("given back at once", w.returned, []time.Duration{0})
				found, err := w.claims.Look(w.t.Context(), slot("lift"), 3, time.Now().Add(time.Hour), time.Now())
				check(w.t, err)
				w.wants("nobody has claimed it", found.Claim.LockedBy, "")
				w.use(func(c *agentdoor.Config) { c.Receiver = w })
				w.wants("the next", w.take(ask("")), []string{"lift"})
			})
		})
	}
}

// lateReceiver has messages that arrive after the asker has gone.
type lateReceiver struct {
	*world
	arrived, deliver chan struct{}
}

func (l *lateReceiver) Receive(_ context.Context, name string, limit int) ([]events.SQSMessage, error) {
	records, err := l.queues.Receive(l.t.Context(), name, limit)
	close(l.arrived)
	<-l.deliver
	return records, err
}

// A claim that was begun is seen to its end, though the asker goes: who asks again under the same name is given its task.
func TestAClaimThatWasBegunIsSeenToItsEnd(t *testing.T) {
	within(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		w.claiming = func(claiming context.Context) {
			cancel()
			until, _ := claiming.Deadline()
			w.wants("how long it may take", time.Until(until), 10*time.Second)
		}
		w.send(w.task("lift"))
		_, err := w.Take(ctx, "crane", ask("r"))
		check(w.t, err)
		w.wants("the same request", w.take(ask("r")), []string{"lift"})
	})
}

// A request waits as long as it says for the first task; where it says nothing, it is told at once.
func TestARequestWaitsAsLongAsItSays(t *testing.T) {
	within(t, func(w *world) {
		for _, c := range []struct{ wait, took time.Duration }{{0, 10 * time.Millisecond}, {7 * time.Second, 7 * time.Second}} {
			began := time.Now()
			w.wants("nothing is there", w.take(agentdoor.Ask{Instance: "c-1", Max: 1, Wait: c.wait}), []string{})
			w.wants("it waited", time.Since(began), c.took)
		}
		w.Close()
		w.Close()
		_, err := w.Take(w.t.Context(), "crane", agentdoor.Ask{Instance: "c-1", Max: 1, Wait: time.Hour})
		w.is("a closed door", err, agentdoor.ErrClosed)
	})
}

func TestSoManyRequestsOfAnAgentWaitAndNoMore(t *testing.T) {
	within(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		for range limits.MaxTaskPolls {
			go func() { _, _ = w.Take(ctx, "crane", agentdoor.Ask{Instance: "c-1", Max: 1, Wait: time.Minute}) }()
		}
		synctest.Wait()
		_, err := w.Take(w.t.Context(), "crane", ask(""))
		w.is("one more", err, agentdoor.ErrBusy)
		_, err = w.Take(w.t.Context(), "clerk", ask(""))
		w.is("one of another agent", err, nil)
		cancel()
		synctest.Wait()
		_, err = w.Take(w.t.Context(), "crane", ask(""))
		w.is("after they have gone", err, nil)
	})
}

// Under the name of a request the same tasks are given again until they end; another name, another process and another agent get others.
func TestARequestNameIsOfOneProcessOfOneAgent(t *testing.T) {
	within(t, func(w *world) {
		w.send(w.task("lift"))
		w.wants("the first time", w.take(ask("r")), []string{"lift"})
		w.wants("again", w.take(ask("r")), []string{"lift"})
		w.wants("another name", w.take(ask("s")), []string{})
		other := ask("r")
		other.Instance = "c-2"
		w.wants("another process", w.take(other), []string{})
		of, err := w.Take(w.t.Context(), "clerk", ask("r"))
		check(w.t, err)
		w.wants("another agent", len(of), 0)
		time.Sleep(time.Minute)
		w.wants("after its end", w.take(ask("r")), []string{})
		w.send(w.task("turn"))
		w.wants("and there is another", w.take(ask("r")), []string{"turn"})
	})
}

// Two requests of one name at once are one: the second waits for what the first is given.
func TestTheSameRequestTwiceAtOnceIsGivenTheSame(t *testing.T) {
	within(t, func(w *world) {
		results := make(chan []string, 2)
		for range 2 {
			go func() {
				results <- w.take(agentdoor.Ask{Instance: "c-1", Max: 1, Wait: 10 * time.Second, Request: "r"})
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(w.t.Context())
		gone := make(chan int)
		go func() {
			tasks, _ := w.Take(ctx, "crane", agentdoor.Ask{Instance: "c-1", Max: 1, Wait: 10 * time.Second, Request: "r"})
			gone <- len(tasks)
		}()
		synctest.Wait()
		cancel()
		w.wants("who does not wait for it", <-gone, 0)
		w.send(w.task("lift"), w.task("turn"))
		one, two := <-results, <-results
		if len(one) != 1 || !slices.Equal(one, two) {
			w.t.Errorf("got %v and %v, want the same one", one, two)
		}
	})
}

// Of the oldest requests nothing is remembered: of more than 1,024, and of what is larger than 16 MiB in all.
func TestWhatIsRememberedOfRequestsIsBounded(t *testing.T) {
	within(t, func(w *world) {
		for i := range 1025 {
			step := fmt.Sprint("s", i)
			w.send(w.task(step, func(task *makegood.Task) { task.Timeout = makegood.Hour }))
			w.wants("given", w.take(ask(step)), []string{step})
		}
		w.wants("the oldest", w.take(ask("s0")), []string{})
		w.wants("the second", w.take(ask("s1")), []string{"s1"})
		w.wants("the last", w.take(ask("s1024")), []string{"s1024"})
	})
	within(t, func(w *world) {
		long := []byte(`"` + strings.Repeat("x", 200<<10) + `"`)
		last := ""
		for i := range 100 {
			last = fmt.Sprint("s", i)
			w.send(w.task(last, func(task *makegood.Task) { task.Timeout, task.Input = makegood.Hour, long }))
			w.wants("given", w.take(ask(last)), []string{last})
		}
		kept := 0
		for i := range 100 {
			kept += len(w.take(ask(fmt.Sprint("s", i))))
		}
		if most := 16 << 20 / (200 << 10); kept > most || kept < most-1 {
			w.t.Errorf("%d tasks of 200 KiB are remembered, want as many as 16 MiB hold, %d", kept, most)
		}
		w.wants("the last", w.take(ask(last)), []string{last})
	})
}

// What is remembered may fill its room to the last byte.
func TestWhatFillsTheRoomOfRequestsIsRemembered(t *testing.T) {
	within(t, func(w *world) {
		const each = 256 << 10
		taskOf := func(i, pad int) makegood.Task {
			return w.task(fmt.Sprintf("s%02d", i), func(task *makegood.Task) {
				task.Timeout, task.Input = makegood.Hour, []byte(`"`+strings.Repeat("x", pad)+`"`)
			})
		}
		empty, err := wire.EncodeTask(taskOf(0, 0))
		check(w.t, err)
		for i := range 16 << 20 / each {
			w.send(taskOf(i, each-len(empty)))
			w.wants("given", len(w.take(ask(fmt.Sprint("r", i)))), 1)
		}
		w.wants("the oldest", w.take(ask("r0")), []string{"s00"})
	})
}

func TestAnErrorOfAJobThatCannotBeReadIsNotItsEnd(t *testing.T) {
	within(t, func(w *world) {
		w.send(w.task("lift"))
		w.take(ask("r"))
		w.taskErr = errors.Join(errDown)
		w.wants("nobody knows", w.take(ask("r")), []string{"lift"})
		w.taskErr = store.ErrNotFound
		w.wants("the job is gone", w.take(ask("r")), []string{})
	})
}

// What is on its way to a request is not forgotten, however many come after it: asked for again, it is waited for.
func TestARequestThatIsAboutToBeGivenSomethingIsNotForgotten(t *testing.T) {
	within(t, func(w *world) {
		begun, release := make(chan struct{}), make(chan struct{})
		w.claiming = func(context.Context) {
			w.claiming = nil
			close(begun)
			<-release
		}
		w.send(w.task("slow"))
		results := make(chan []string, 2)
		go func() { results <- w.take(ask("slow")) }()
		<-begun
		for i := range 1030 {
			step := fmt.Sprint("s", i)
			w.send(w.task(step, func(task *makegood.Task) { task.Timeout = makegood.Hour }))
			w.wants("given", w.take(ask(step)), []string{step})
		}
		go func() {
			results <- w.take(agentdoor.Ask{Instance: "c-1", Max: 10, Wait: 5 * time.Second, Request: "slow"})
		}()
		synctest.Wait()
		close(release)
		w.wants("the first", <-results, []string{"slow"})
		w.wants("asked for again", <-results, []string{"slow"})
		w.wants("one of the first after it", w.take(ask("s0")), []string{})
	})
}

// Two who ask again for what was answered are one request still: who forgets it last forgets not what the first has begun.
func TestTwoWhoAskAgainForWhatWasAnsweredAreOneRequest(t *testing.T) {
	within(t, func(w *world) {
		w.send(w.task("lift"))
		w.wants("the first time", w.take(ask("r")), []string{"lift"})
		w.taskErr = store.ErrNotFound // The job is over.
		first, second := make(chan struct{}), make(chan struct{})
		looks := 0
		w.looking = func() {
			w.mu.Lock()
			looks++
			mine := []chan struct{}{first, second}[min(looks, 2)-1]
			w.mu.Unlock()
			<-mine
		}
		results := make(chan []string, 2)
		for range 2 {
			go func() {
				results <- w.take(agentdoor.Ask{Instance: "c-1", Max: 1, Wait: 5 * time.Second, Request: "r"})
			}()
		}
		synctest.Wait()
		close(first)
		synctest.Wait()
		close(second)
		synctest.Wait()
		w.taskErr = nil
		w.send(w.task("turn"))
		w.wants("one", <-results, []string{"turn"})
		w.wants("the other", <-results, []string{"turn"})
	})
}

// A request that was given nothing is forgotten at once, and pushes out none that was given something.
func TestRequestsThatAreGivenNothingAreNotRemembered(t *testing.T) {
	within(t, func(w *world) {
		for _, step := range []string{"lift", "turn"} {
			w.send(w.task(step, func(task *makegood.Task) { task.Timeout = makegood.Hour }))
			w.wants("given", w.take(ask(step)), []string{step})
			for i := range 1030 {
				w.wants("nothing is there", w.take(ask(fmt.Sprint(step, i))), []string{})
			}
		}
		w.wants("the first", w.take(ask("lift")), []string{"lift"})
	})
}
