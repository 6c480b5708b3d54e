package embedded_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// A map with more items than a part has is a tree of jobs: one for the step, one for each part. These tests strike the
// calls of such a tree. With parts as they are it has some thousand calls, and a sample of them is struck; where tests
// run whole, they also run with parts of two items, and every call is struck.

// smallParts is the tree with parts of smallPart items.
var smallParts = proof.Bug{Name: "small parts", File: "limits/users.go", Old: "PartItems = 100\n", New: fmt.Sprintf("PartItems = %d\n", smallPart)}

const smallPart = 2

// A map of twoParts items has two parts. A map of threeLevels items has two parts, and the first has parts of its own.
const (
	twoParts    = limits.PartItems + 1
	threeLevels = limits.PartItems*limits.PartItems + 1
)

// partsYAML is the workflow with a map of so many items. All items may be under way at once.
func partsYAML(items int) string {
	return strings.Replace(mapYAML, `{over: "${ [range(3)] }", concurrency: 2}`,
		fmt.Sprintf(`{over: "${ [range(%d)] }", concurrency: %d}`, items, min(limits.MaxConcurrency, 2*limits.PartItems*limits.PartItems)), 1)
}

// inSmallParts runs the test again with small parts, where tests run whole.
func inSmallParts(t *testing.T) {
	t.Helper()
	if testing.Short() || limits.PartItems == smallPart {
		return
	}
	out, err := proof.Run(t, smallParts, "-v", "-timeout", "30m", "-run", "^"+t.Name()+"$", ".")
	for _, line := range regexp.MustCompile(`_test\.go:\d+: (.*)`).FindAllStringSubmatch(string(out), -1) {
		t.Log(line[1])
	}
	if err != nil {
		t.Errorf("with parts of %d items: %v\n%s", smallPart, err, out)
	}
}

// sample is the first, the middle and the last call of each name, each struck in one of these ways; in a short run one
// of these, of every second name.
func sample(calls map[string]int, kinds ...effect) (few []blow) {
	names := slices.Sorted(maps.Keys(calls))
	for i, name := range names {
		at := slices.Compact([]int{1, (calls[name] + 1) / 2, calls[name]})
		if testing.Short() {
			at = at[i%len(at):][:(i+1)%2]
		}
		for _, n := range at {
			few = append(few, blow{name, n, kinds[len(few)%len(kinds)]})
		}
	}
	return few
}

// untilItFalls plays the job with a blow. How many calls there are is not the same every time: where it did not come to
// that one, the blow strikes half as late.
func untilItFalls(t *testing.T, g golden, b blow) (fell int) {
	t.Helper()
	for ; fell == 0 && b.n > 0; b.n /= 2 {
		_, fell = voyageOf(t, g, b)
	}
	return fell
}

// A map of two parts is undone, because a step behind it fails. Whatever call fails or is the last one of the process,
// no item is lost, done twice, or left as it is.
func TestAMapOfPartsIsUndoneWhicheverCallFailsOrIsTheLast(t *testing.T) {
	g := golden{yaml: partsYAML(twoParts), child: paymentYAML, input: `{"sku":"a"}`, unanswered: "ship", want: makegood.JobUndone}
	kinds := []effect{failBefore, failAfter, crashBefore, crashAfter}
	if limits.PartItems == smallPart {
		strikeEach(t, g, kinds)
		g.yaml = partsYAML(threeLevels)
		strikeEach(t, g, kinds[3:])
		return
	}
	calls := callsOf(t, g)
	blows, fell := sample(calls, kinds...), 0
	for _, b := range blows {
		fell += untilItFalls(t, g, b)
	}
	t.Logf("%d items: %d of %d calls struck, in %d of which it came to that", twoParts, len(blows), count(calls), fell)
	if fell < len(blows)*3/4 || count(calls) < limits.PartItems {
		t.Errorf("%d of %d blows fell, on %d calls; want most, and a call for each item at least", fell, len(blows), count(calls))
	}
	inSmallParts(t)
}

// The submitter cancels a map of two parts before any call of its life.
func TestAMapOfPartsEndsAsItShouldWheneverItIsCancelled(t *testing.T) {
	g := golden{yaml: partsYAML(twoParts), child: paymentYAML, input: `{"sku":"a"}`, want: makegood.JobProcessed}
	calls := most(func() map[string]int {
		v, _ := voyageOf(t, g)
		return v.atEnd
	})
	places := blowsOn(calls, goesOn)
	if limits.PartItems != smallPart {
		places = sample(calls, goesOn)
	}
	asked, granted := 0, 0
	for _, g.cancelBefore = range places {
		v, _ := voyageOf(t, g)
		for !v.asked && g.cancelBefore.n > 1 {
			g.cancelBefore.n /= 2
			v, _ = voyageOf(t, g)
		}
		if v.asked {
			asked++
		}
		if v.granted {
			granted++
		}
	}
	t.Logf("%d items: cancelled before %d of %d calls, in %d of which it came to that, and was granted in %d",
		twoParts, len(places), count(calls), asked, granted)
	if asked < len(places)*3/4 || granted < asked/2 {
		t.Errorf("of %d cancels %d were asked for and %d granted, want most", len(places), asked, granted)
	}
	inSmallParts(t)
}

// The submitter cancels a map of two parts before any call of its birth, and then the process dies with any call.
func TestAMapOfPartsIsCancelledWhileItIsBornWhicheverCallIsTheLast(t *testing.T) {
	g := golden{yaml: partsYAML(twoParts), child: paymentYAML, input: `{"sku":"a"}`, cancel: true, still: true, want: makegood.JobCancelled}
	birth := most(func() map[string]int {
		v, _ := voyageOf(t, g)
		return v.atCancel
	})
	places := blowsOn(birth, goesOn)
	if limits.PartItems != smallPart {
		places = sample(birth, goesOn)
	}
	runs, fell := 0, 0
	for i := range places {
		g.cancelBefore = places[i]
		v, _ := voyageOf(t, g)
		deaths := blowsOn(v.callsAtEnd, crashAfter)
		if limits.PartItems != smallPart {
			all := sample(v.callsAtEnd, crashBefore, crashAfter)
			deaths = all[i%len(all):][:1]
		}
		for _, death := range deaths {
			runs, fell = runs+1, fell+untilItFalls(t, g, death)
		}
	}
	t.Logf("%d items: cancelled before %d of %d calls of the birth, and killed with a later call in %d runs, in %d of which it came to that",
		twoParts, len(places), count(birth), runs, fell)
	if fell < runs*3/4 || runs < len(places) {
		t.Errorf("in %d of %d runs the process died, want most, and a run for each of %d cancels", fell, runs, len(places))
	}
	inSmallParts(t)
}

// The items of a map are written a part at a time, and a written part stays. So all items are written after several
// tries, though each try fails.
func TestTheItemsOfAMapAreWrittenThoughNoTryWritesThemAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		puts, remote := 0, troupe{}
		w := open(t, embedded.Config{
			Agents: remote.agents("payments"),
			WrapStore: func(inner store.Store) store.Store {
				return faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
					if c.Op != "PutPayload" || !strings.HasPrefix(c.Of, "map#") {
						return faultstore.None
					}
					if puts++; puts%3 == 0 {
						return faultstore.FailBefore
					}
					return faultstore.None
				})
			},
		})
		w.patience = time.Hour
		items := 6 * limits.PartItems
		w.submit(w.define(fmt.Sprintf(`
name: wide
steps:
  - {name: pay, agent: payments, map: {over: "${ [range(%d)] }", concurrency: 1000, outputs: manifest}, undo: none}
`, items)), "j", `{}`)
		w.ends("j", makegood.JobProcessed)
		if done := len(remote.seen("")); done != items || puts != 8 {
			t.Errorf("%d of %d items were done, after %d writes; want 8: two of the parts at each try, and one that fails", done, items, puts)
		}
	})
}

// gate tells the voyage of each call of a queue before it is made.
type gate struct {
	*voyage
	embedded.Queues
}

func callOf(op faultqueue.Op, queue string) string { return fmt.Sprintf("%s %s", op, queue) }

func (g gate) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	g.arrives(callOf(faultqueue.Send, name))
	return g.Queues.Send(ctx, name, messages...)
}

func (g gate) Depth(ctx context.Context, name string) (queue.Depth, error) {
	g.arrives(callOf(faultqueue.Depth, name))
	return g.Queues.Depth(ctx, name)
}

func (g gate) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	g.arrives(callOf(faultqueue.Receive, name))
	return g.Queues.Receive(ctx, name, limit)
}

func (g gate) Delete(ctx context.Context, name string, receipts ...string) error {
	g.arrives(callOf(faultqueue.Delete, name))
	return g.Queues.Delete(ctx, name, receipts...)
}

func (g gate) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	g.arrives(callOf(faultqueue.Return, name))
	return g.Queues.Return(ctx, name, after, receipts...)
}

// submits begins to count the calls that cancelBefore names.
func (v *voyage) submits(engine *embedded.Engine) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.engine, v.arrived = engine, map[string]int{}
}

// arrives counts a call before it is made. If it is the one before which the submitter cancels the job, the call waits
// for the answer.
func (v *voyage) arrives(call string) {
	v.mu.Lock()
	v.arrived[call]++
	now := v.engine != nil && !v.asked && v.cancelBefore.call == call && v.cancelBefore.n == v.arrived[call]
	v.mu.Unlock()
	if now {
		_ = v.asksCancel() // The submitter asks again if that fails.
	}
}

// asks reports whether the submitter has asked for the cancel, and has no answer yet.
func (v *voyage) asks() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked && !v.settled
}

// asksCancel asks for the cancel of the job. Attempts under way may end after it.
func (v *voyage) asksCancel() error {
	v.mu.Lock()
	engine, before := v.engine, v.cancelBefore.n > 0
	if !v.asked {
		v.asked, v.atCancel = true, maps.Clone(v.arrived)
		if before { // Calls are counted from the cancel on.
			v.calls = map[string]int{}
		}
	}
	v.mu.Unlock()
	_, verdict, err := engine.Parts().Scheduler.Request(context.Background(), "j", job.Requested{Verb: makegood.VerbCancel, Request: "c1"})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.settled {
		return nil
	}
	v.settled, v.granted = true, verdict.Kind != machine.Refused
	if before && v.granted {
		v.want = makegood.JobCancelled
	}
	select {
	case <-v.answered:
	default:
		close(v.answered)
	}
	return nil
}
