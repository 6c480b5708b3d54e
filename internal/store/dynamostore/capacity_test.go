//go:build aws

package dynamostore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// chain is a workflow of sequential steps with names of eight bytes and an agent each claims for.
func chain(steps int) makegood.Workflow {
	w := makegood.Workflow{Name: "order"}
	for i := range steps {
		w.Steps = append(w.Steps, makegood.Step{Name: fmt.Sprintf("step_%03d", i), Agent: "shop"})
	}
	return w.WithDefaults()
}

// reference runs a job as the scheduler and its agents would, by calls of the store.
type reference struct {
	*testing.T
	store  *Store
	w      makegood.Workflow
	now    time.Time
	output json.RawMessage
}

// run runs a job to its end and gives it as it is loaded then.
func (r *reference) run(id string) makegood.Job {
	input := `{"text":"` + strings.Repeat("x", makegood.MaxInlineBytes-11) + `"}`
	job, v := machine.Submit(r.w, machine.Submission{
		ID: id, Definition: strings.Repeat("0a", 16), InputHash: strings.Repeat("0b", 16), Input: wire.Inline([]byte(input)),
	}, r.facts(), r.now)
	if v.Kind != machine.Applied {
		r.Fatalf("submit: got %v", v)
	}
	must(r.T, "create", r.store.Create(r.Context(), job))
	for i, step := range r.w.Steps {
		r.now = r.now.Add(50 * time.Millisecond)
		r.step(id, step.Name, i+1)
	}
	done, err := r.store.Load(r.Context(), id)
	must(r.T, "load", err)
	if done.ProcessState != makegood.Processed {
		r.Fatalf("got %s, want Processed", done.ProcessState)
	}
	return done
}

// facts answer all that the machine may want: every step runs.
func (r *reference) facts() machine.Facts {
	f := machine.Facts{Values: map[machine.Want]machine.Fact{}}
	for _, s := range r.w.Steps {
		f.Values[machine.Want{Step: s.Name}] = machine.Fact{Run: true}
	}
	return f
}

// step claims an attempt, loads, and saves what its success makes of the job.
func (r *reference) step(id, name string, n int) {
	claim := makegood.Claim{
		Attempt: 1, LockedBy: "2026/11/21/[$LATEST]0123456789abcdef0123456789abcdef:0123456789abcdef0123456789abcdef",
		StartedAt: r.now, CompleteBy: r.now.Add(30 * time.Second),
	}
	must(r.T, "claim", r.store.Claim(r.Context(), id, name, claim))
	job, err := r.store.Load(r.Context(), id)
	must(r.T, "load", err)
	output := wire.Inline(r.output)
	if len(r.output) > makegood.MaxInlineBytes {
		output = makegood.Payload{Ref: outputPrefix(name, 1) + "0123456789abcdef", Bytes: len(r.output)}
		must(r.T, "put payload", r.store.PutPayload(r.Context(), id, output.Ref, r.output))
	}
	e := makegood.StepSucceeded{Step: name, Attempt: 1, LockedBy: claim.LockedBy, Output: output}
	next, v := machine.Apply(r.w, job, e, r.facts(), r.now.Add(20*time.Millisecond))
	if v.Kind != machine.Applied {
		r.Fatalf("step %s: got %v", name, v)
	}
	next.LockedBy = fmt.Sprintf("2026/11/21/[$LATEST]0123456789abcdef0123456789abcdef:%016x", n)
	must(r.T, "save", r.store.Save(r.Context(), store.Change{Job: next, Seen: job.CompleteBy, Ended: v.Ended, OnClaims: v.OnClaims}))
}

// measured gives what do has cost. A request whose answer was lost is asked again by the SDK: what it
// cost then is told twice, or not at all where the store finds its own write. So do runs again then,
// with another job.
func (tab *table) measured(t *testing.T, do func(id string)) []cost {
	t.Helper()
	for n := range 5 {
		tab.spent.take()
		before := tab.transport.requests.Load()
		do(fmt.Sprintf("order-%06d", n))
		costs := tab.spent.take()
		if tab.transport.requests.Load()-before == int64(len(costs)) {
			return costs
		}
	}
	t.Fatalf("in each of five runs a request was asked again: %q", tab.transport.troubled)
	return nil
}

func (tab *table) reference(t *testing.T, steps, output int) *reference {
	text := `"` + strings.Repeat("y", output-2) + `"`
	return &reference{T: t, store: tab.open(t), w: chain(steps), now: makegood.Instant(time.Now()), output: json.RawMessage(text)}
}

// sum adds up writes by operation; reads are apart.
func sum(all []cost) (writes, reads float64, list []string) {
	for _, c := range all {
		list = append(list, fmt.Sprintf("%s %v+%v", c.operation, c.table, c.index))
		if strings.HasPrefix(c.operation, "Load") {
			reads += c.total
		} else {
			writes += c.total
		}
	}
	return writes, reads, list
}

// The budget of design.md: birth 1 and 1 for the index, a claim 1, a save 1, the end 1 more for the
// index. What it costs is what the server says.
func TestTheReferenceJobCostsItsUnits(t *testing.T) {
	tab := newTable(t)
	_, reads, got := sum(tab.measured(t, func(id string) { tab.reference(t, 5, 32).run(id) }))
	want := []string{"Create 1+1"}
	for range 4 {
		want = append(want, "Claim 1+0", "Load 1+0", "Save 1+0")
	}
	want = append(want, "Claim 1+0", "Load 1+0", "Save 1+1", "Load 1+0")
	same(t, "what each request cost", got, want)
	if reads != 6 {
		t.Errorf("reads: got %v units, want one a step and one at the end", reads)
	}
}

// An output of a kilobyte is an item of two units, and nothing else costs more.
func TestLargeOutputsCostTheirOwnItemsOnly(t *testing.T) {
	tab := newTable(t)
	writes, reads, got := sum(tab.measured(t, func(id string) { tab.reference(t, 5, 1024).run(id) }))
	if want := 2.0 + 5*(1+2+1) + 1; writes != want || reads != 6 {
		t.Errorf("got %v write units and %v read units, want %v and 6:\n%s", writes, reads, want, strings.Join(got, "\n"))
	}
}

// Saves rewrite the whole item, so a job of many steps pays by its size. Its limits are those of
// design.md: 20 steps 5 units a step, 200 steps 12, on the average.
func TestJobsOfManyStepsKeepToTheirUnits(t *testing.T) {
	for steps, limit := range map[int]float64{20: 5, makegood.MaxSteps: 12} {
		t.Run(fmt.Sprint(steps, " steps"), func(t *testing.T) {
			tab := newTable(t)
			tab.spent.take()
			job := tab.reference(t, steps, 32).run("order-000001")
			// Of so many requests some are asked again on a busy machine, which is a unit more or less.
			writes, reads, got := sum(tab.spent.take())
			t.Logf("%d steps: %.2f write units and %.2f read units a step", steps, writes/float64(steps), reads/float64(steps))
			if writes/float64(steps) > limit {
				t.Errorf("got %.2f write units a step, the limit is %v:\n%s", writes/float64(steps), limit, strings.Join(got, "\n"))
			}
			for _, s := range job.Steps {
				if string(s.Forward.Output.Inline) != `"`+strings.Repeat("y", 30)+`"` || s.Forward.FinishedAt.IsZero() {
					t.Fatalf("%s: got %+v, which has lost its details", s.Name, s.Forward)
				}
			}
		})
	}
}

// A claim that must lower the key costs a failed condition, and moves the key: two units of the index.
func TestAClaimThatLowersTheKeyMovesItOnce(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := job("order-000004")
	must(t, "create", s.Create(t.Context(), j))
	tab.spent.take()
	before := tab.transport.requests.Load()
	claim := makegood.Claim{Attempt: 1, LockedBy: "agent:1", StartedAt: j.CreatedAt, CompleteBy: j.CreatedAt.Add(time.Second)}
	must(t, "claim", s.Claim(t.Context(), j.ID, "reserve1", claim))
	_, _, got := sum(tab.spent.take())
	same(t, "what the claim cost", got, []string{"Claim 1+2"})
	if n := tab.transport.requests.Load() - before; n != 2 {
		t.Errorf("got %d writes, want 2", n)
	}
}

// What the code thinks an item weighs decides what spills, so it must not be less than what is paid
// for.
func TestAnItemWeighsWhatIsPaidFor(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	for fill := 300; fill < 2600; fill += 17 {
		it := besideItem(job(fmt.Sprint("weight-", fill)), 1)
		it[attrData] = blob(make([]byte, fill))
		_, err := s.put(t.Context(), "Put", it, "", nil)
		must(t, "put", err)
		if got, want := tab.spent.take()[0].table, float64(units(weight(it))); got > want {
			t.Errorf("an item of %d bytes cost %v units, want %v", weight(it), got, want)
		}
	}
}
