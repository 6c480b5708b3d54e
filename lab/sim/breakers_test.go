package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// breakersOf is a run in which agents have breakers, and services outages; in some, agents have limits, steps wait for
// those outside, or jobs of their own do steps.
func breakersOf(seed uint64) Options {
	return Options{Seed: seed, Breakers: true, Limits: seed%5 == 0, Waits: seed%6 == 3, Children: seed%8 == 1}
}

// The same with breakers: no attempt is counted that met one, one job at a time is let through, and each agent that is
// well again is found so, whatever dies. BREAKERS=5000 plays so many seeds, from FROM on.
func TestWhateverGoesWrongNoJobStaysBehindABreaker(t *testing.T) {
	n, first := uint64(200), uint64(1)
	if testing.Short() {
		n /= 5
	}
	if more, err := strconv.ParseUint(os.Getenv("BREAKERS"), 10, 64); err == nil {
		n = more
	}
	if from, err := strconv.ParseUint(os.Getenv("FROM"), 10, 64); err == nil {
		first = from
	}
	s, all := newSum(), breaks{}
	for seed := first; seed < first+n; seed++ {
		o := breakersOf(seed)
		o.Seen = &s.seen
		r := run(t, o)
		s.add(seed, r)
		all.add(r.Breaks)
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\nAgain: go test ./sim -run TestSimulate -args -breakers -seed %[1]d -trace", seed, r.Violations[0])
		}
		if len(s.failed) > 40 {
			break
		}
	}
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		if s.ends[state] < int(n) {
			t.Errorf("got %d jobs %s in %d seeds, want many", s.ends[state], state, s.seeds)
		}
	}
	if all.Judged < int(n)/40 || all.Slow < int(n)/10 || min(all.Trips, all.Probes, all.Heals, all.Deferred) < int(n)/4 {
		t.Errorf("%s in %d seeds, want more", all, s.seeds)
	}
	t.Logf("%d seeds, %d events, ends %v: %s", s.seeds, s.events, s.ends, all)
}

// Seeds that broke a rule once. 132: an attempt with a claim that cannot be true was judged twice, as silent and by
// its reply. In 231, 649 and 873 the rules did not know of an answer that a step waits, of a success that is late,
// and of a person that settles a step. In 2211 they did not count the attempt of a chain that was answered, with the
// one before it, that it waits.
func TestWhatBrokeARuleOfABreakerOnceDoesNotAgain(t *testing.T) {
	for _, seed := range []uint64{132, 231, 649, 873, 2211} {
		if r := run(t, breakersOf(seed)); len(r.Violations) > 0 {
			t.Errorf("seed %d: %s", seed, r.Violations[0])
		}
	}
}

// bugsOfBreakers are wrong versions of the breaker.
func bugsOfBreakers() []proof.Bug {
	const breaker, judge, attempts = "holds/breaker.go", "scheduler/breaker.go", "machine/moves_attempts.go"
	return proof.Bugs([][4]string{
		{"a probe that succeeds does not resume the agent", breaker, "\t\t\tk.resume(h, byBreaker)\n", ""},
		{"no probe is let through after the first", breaker, "\t\t\th.Next = domain.Instant(k.config.Now()).Add(probeIn(h))\n", "\t\t\th.Next = domain.Instant(k.config.Now()).Add(1000 * probeIn(h))\n"},
		{"an attempt that met the breaker is counted", attempts, "\t\ta.Tries--\n\t}\n\tended.Reason", "\t\ta.Deferred += 0\n\t}\n\tended.Reason"},
		{"the breaker counts final errors", judge, "!(sick.Retryable && domain", "!(domain"},
		{"an outage of one agent pauses another", judge, "s.config.Breaker.Saw(ctx, agent,", "s.config.Breaker.Saw(ctx, \"b\","},
		{"an attempt of before the pause is taken for a probe", breaker, "h.Tripped && h.On() && opened.After(h.Since.Add(limits.HoldsFresh))", "h.Tripped && h.On()"},
		{"the breaker takes the place of a pause of a person", breaker, "tripped = h.Name == \"\" || !h.On();", "tripped = h.Name == \"\" || !h.On() || !h.Automatic();"},
		{"an agent begins tasks of all jobs while one is the probe", "holds/reader.go", "_, agentOn := all.OnFor(job.HoldName(makegood.HoldAgent, t.Agent), t.Job)", "h, agentOn := all.On(job.HoldName(makegood.HoldAgent, t.Agent))\n\tagentOn = agentOn && h.Probe == \"\""},
		{"all jobs go on while one is the probe", "machine/facts_standing.go", "return t.facts.Held.OnFor(name, t.job.ID)", "h, on := t.facts.Held.On(name)\n\treturn h, on && h.Probe == \"\""},
		{"an attempt is judged twice", judge, "&& !replied {", "&& (!replied || e.Attempt > 0) {"},
	})
}

// One of the wrong versions; make planted tries them all.
func TestPlantedBugsOfBreakersAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugsOfBreakers(), All: os.Getenv("PLANTED") != "", Quick: []int{2}, Found: foundAfter,
		Args: []string{"-run", "^TestUntilTheFirstViolation$", ".", "-until-violation", "-breakers"},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of the breaker are found; ", len(bugsOfBreakers())))
}
