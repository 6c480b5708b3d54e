package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// begins is a job of n steps that have not begun.
func begins(n int) job.Job {
	j := finished(n)
	for i := range j.Steps {
		j.Steps[i].Attempt, j.Steps[i].Forward = 0, job.Activity{}
	}
	return j
}

// do ends a step with an attempt that says what it was.
func do(j *job.Job, i int, what string) {
	s := &j.Steps[i]
	s.Attempt++
	s.Forward = job.Activity{
		State: job.Failed, Attempt: s.Attempt, Tries: s.Attempt, At: j.CreatedAt.Add(time.Duration(i) * time.Second), Cause: "submit",
		Error: &job.StepError{Message: what},
	}
}

// Many saves, each of which puts steps into details: jobs that name few of them and many, and none themselves. Steps are
// done again, processes forget, save with what they remember of an earlier revision, and lose races.
func TestAnyChainIsLoadedAsItWasSaved(t *testing.T) {
	longest := 0
	seed.Check(t, func(t *rapid.T) {
		j, bodies := begins(60), map[string][]byte{}
		var stored, before []detail
		for n := range rapid.IntRange(60, 120).Draw(t, "saves") {
			do(&j, n%len(j.Steps), fmt.Sprint("in its turn ", n))
			for range rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "again") {
				do(&j, rapid.IntRange(0, n).Draw(t, "step")%len(j.Steps), fmt.Sprint("again ", n))
			}
			if rapid.IntRange(0, 3).Draw(t, "race") == 0 {
				loser := j.Clone()
				do(&loser, 1, "in vain")
				unpackAll(t, spilled(loser, stored), bodies)
			}
			remembered := stored
			switch rapid.IntRange(0, 39).Draw(t, "memory") {
			case 0:
				remembered = nil
			case 1, 2, 3, 4:
				remembered = before
			}
			p := spilled(j, remembered)
			if len(p.details) > maxDetails {
				t.Fatalf("the job names %d details, want %d at most", len(p.details), maxDetails)
			}
			if j.Needs = max(j.Needs, p.needs); isChained(p.details) && j.Needs != job.LevelChained {
				t.Fatalf("got a job that needs %d, want %d", j.Needs, job.LevelChained)
			}
			got, now := unpackAll(t, p, bodies)
			same(t, "job", got, inData(j))
			longest = max(longest, depth(t, p, bodies))
			before, stored = stored, now
		}
	})
	if longest < 4 {
		t.Errorf("no chain was longer than %d details", longest)
	}
}

// spilled is the job with the details of all that is over in items of their own.
func spilled(j job.Job, stored []detail) packed {
	return packedWith(j, details(j, alive(j, stored), over), 0)
}

// depth is how many details lie behind each other.
func depth(t failer, p packed, bodies map[string][]byte) int {
	deepest := 0
	var from func(key string, n int)
	from = func(key string, n int) {
		deepest = max(deepest, n)
		_, before, err := jobformat.DecodeDetails(bodies[key])
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range before {
			from(detailPrefix+hashText(hash), n+1)
		}
	}
	for _, d := range p.details {
		from(d.key, 1)
	}
	return deepest
}

// chained is a job of 60 steps with a chain, as it was packed and as it is loaded.
func chained(t failer) (job.Job, packed, []detail, map[string][]byte) {
	j, bodies := begins(60), map[string][]byte{}
	var p packed
	var stored []detail
	for i := range 40 {
		do(&j, i, fmt.Sprint("done ", i))
		p = spilled(j, stored)
		_, stored = unpackAll(t, p, bodies)
		j.Needs = p.needs
	}
	if depth(t, p, bodies) < 3 {
		t.Fatal("the job has no chain")
	}
	return j, p, stored, bodies
}

// Two that save at once name the same details before theirs. What the loser has written is reached from no job.
func TestTheLosersDetailIsReachedByNoChain(t *testing.T) {
	j, _, stored, bodies := chained(t)
	for i := 40; i < 60; i++ {
		winner, loser := j.Clone(), j.Clone()
		do(&winner, i, "won")
		do(&loser, i, "lost")
		do(&loser, 0, "lost, too")
		unpackAll(t, spilled(loser, stored), bodies)
		got, now := unpackAll(t, spilled(winner, stored), bodies)
		same(t, "job of the winner", got, inData(winner))
		j, stored = winner, now
	}
}

// A release before names all details in the job. It is read, and the next detail takes their names over.
func TestAJobThatNamesAllOfItsDetailsIsReadAndChained(t *testing.T) {
	j, bodies := begins(60), map[string][]byte{}
	var all []detail
	for i := range 30 {
		do(&j, i, fmt.Sprint("done ", i))
		one := newDetail(j, nil)
		p := jobformat.Place{Step: i}
		one.body.Add(j.Steps[i].Name, p, p.At(j.Steps))
		one.holds[p] = j.Steps[i].Forward
		all = append(all, one.detail())
	}
	old := packedWith(j, all, 0)
	got, stored := unpackAll(t, old, bodies)
	same(t, "job of the release before", got, inData(j))
	if old.needs != 0 || len(stored) != 30 {
		t.Fatalf("got %d details and a job that needs %d, want 30 and 0", len(stored), old.needs)
	}
	same(t, "a save without another detail", packedWith(j, details(j, alive(j, stored), over), 0).data, old.data)
	do(&j, 30, "the next")
	p := spilled(j, stored)
	got, _ = unpackAll(t, p, bodies)
	j.Needs = job.LevelChained
	same(t, "job with a chain", got, inData(j))
	if saved := len(old.data) - len(p.data); len(p.details) != 1 || p.needs != job.LevelChained || saved < 29*keyLen {
		t.Errorf("got %d details, a job that needs %d, and %d bytes less, want one, %d, and %d bytes at least", len(p.details), p.needs, saved, job.LevelChained, 29*keyLen)
	}
}

// A job with a chain needs its level, in its data and beside it, and keeps it; one that needs a higher one keeps that.
func TestAJobWithAChainNeedsItsLevel(t *testing.T) {
	j, p, _, _ := chained(t)
	if u, err := jobformat.Decode(p.data); err != nil || u.Job.Needs != job.LevelChained || p.needs != job.LevelChained {
		t.Errorf("got a job that needs %d, beside it %d, and %v", u.Job.Needs, p.needs, err)
	}
	j.Needs = 0
	if got, want := packedWith(j, p.details, 0).bytes+len(attrData), sizeOf(item{attrData: blob(p.data), attrNeeds: number(job.LevelChained)}); got != want {
		t.Errorf("the item weighs %d bytes, want %d", got, want)
	}
	j.Needs = job.LevelChained + 1
	if own := packedWith(j, p.details, 0); own.needs != j.Needs || own.bytes != len(own.data) {
		t.Errorf("got level %d and %d bytes, want %d and %d: the level is beside the data of such a job", own.needs, own.bytes, j.Needs, len(own.data))
	}
}

// Without one of its details a job with a chain is damaged, wherever in the chain that was.
func TestAChainThatIsTornIsDamaged(t *testing.T) {
	j, p, _, bodies := chained(t)
	for key := range bodies {
		torn := maps.Clone(bodies)
		delete(torn, key)
		u, err := jobformat.Decode(p.data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fill(&u, torn); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: got %v, want %v that names it", key, err, store.ErrDamaged)
		}
	}
	// Bytes of our own never come before themselves.
	last := newDetail(j, nil)
	key := p.details[len(p.details)-1].key
	last.body = jobformat.NewDetails(j, [][]byte{hashOf(key)})
	last.body.Add("a", jobformat.Place{}, &j.Steps[0].Forward)
	bodies[key] = last.body.Encode()
	u, err := jobformat.Decode(p.data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(&u, bodies); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a detail before itself: got %v, want %v", err, store.ErrDamaged)
	}
}

// A step that fails for ever takes its old detail's name out of the job each time, so that no chain grows by it.
func TestAStepThatIsDoneAgainForEverMakesNoChain(t *testing.T) {
	j, bodies := begins(40), map[string][]byte{}
	for i := range 39 {
		do(&j, i, "done")
	}
	var stored []detail
	for n := range 10 * maxDetails {
		do(&j, 39, fmt.Sprint("again ", n))
		p := spilled(j, stored)
		if _, stored = unpackAll(t, p, bodies); len(p.details) > 2 || isChained(p.details) {
			t.Fatalf("after %d times the job names %d details, and chains: %t", n, len(p.details), isChained(p.details))
		}
	}
}

// The item of a job of 200 steps that end one after the other stays within a unit.
func TestTheItemOfALongJobStaysWithinAUnit(t *testing.T) {
	j, bodies := begins(limits.MaxSteps), map[string][]byte{}
	var stored []detail
	named, most := []int{}, 0
	for i := range j.Steps {
		j.Steps[i].Attempt = 1
		j.Steps[i].Forward = job.Activity{
			State: job.Done, Attempt: 1, Tries: 1, At: j.CreatedAt.Add(time.Duration(i) * time.Second), StartedAt: j.CreatedAt, FinishedAt: j.CreatedAt,
			Cause: fmt.Sprint("step#", i), Output: job.Payload{Inline: []byte(strings.Repeat("y", 32)), Bytes: 32},
		}
		const beside = 300
		p := pack(j, stored, beside)
		most = max(most, p.bytes)
		named = append(named, len(p.details))
		got, now := unpackAll(t, p, bodies)
		j.Needs = p.needs
		same(t, "job", got, inData(j))
		stored = now
	}
	if most > unit {
		t.Errorf("the item had %d bytes, want %d at most", most, unit)
	}
	if got := slices.Max(named); got != maxDetails {
		t.Errorf("the job named %d details, want %d and then a chain: else this shows nothing", got, maxDetails)
	}
}
