package makegoodtest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// The flags that replay one run of a test.
var (
	caseFlag = flag.String("makegoodtest.case", "", "CrashEverywhere runs this case only, as Save.2.killed-after")
	seedFlag = flag.Uint64("makegoodtest.seed", 0, "Chaos runs this seed only")
)

const (
	// countings is how many runs are made to count the calls: which goroutine comes first may differ.
	countings = 2
	// maxViolations is how many violations of a test are looked for.
	maxViolations = 5
)

// strike is a fault for one call of the engine's first life.
type strike struct {
	name string
	n    int
	effect
}

// String is how -makegoodtest.case names it.
func (s strike) String() string { return fmt.Sprintf("%s.%d.%s", s.name, s.n, effectNames[s.effect]) }

func parseStrike(text string) (strike, error) {
	parts := strings.Split(text, ".")
	if len(parts) < 3 {
		return strike{}, fmt.Errorf("-makegoodtest.case=%s: want CALL.NUMBER.EFFECT, as Save.2.killed-after", text)
	}
	last := len(parts) - 1
	n, err := strconv.Atoi(parts[last-1])
	e := slices.Index(effectNames, parts[last])
	if err != nil || n < 1 || e <= int(faultstore.None) {
		return strike{}, fmt.Errorf("-makegoodtest.case=%s: want a number from 1 on, and one of %v", text, effectNames[1:])
	}
	return strike{strings.Join(parts[:last-1], "."), n, effect(e)}, nil
}

// CrashEverywhere runs the job once without a fault and counts the calls that the engine makes to its store and its
// queues until the job has ended. Then it runs the job again, with new services, for every call and every fault of a
// call:
//
//	fails-before   the call fails and had no effect
//	fails-after    the call had its effect, and fails all the same
//	killed-before  the engine dies before the call has its effect
//	killed-after   the engine dies after it, before the next call
//
// A dead engine is started again, and the submitter submits again, as one must after no answer. Each run goes to the
// end of the job and a little further, for work that was still under way; then Check is asked. The test fails with
// the first violation told in full, with the line that replays it, and the names of all that were found; after five
// it stops. A small workflow takes a second or two.
func CrashEverywhere(t *testing.T, c Case) {
	t.Helper()
	var strikes []strike
	if *caseFlag != "" {
		s, err := parseStrike(*caseFlag)
		if err != nil {
			t.Fatal(err)
		}
		strikes = []strike{s}
	} else {
		strikes = allStrikes(t, c)
	}
	var found violations
	for _, s := range strikes {
		if found.enough() {
			break
		}
		found.run(crashRun(t, c, s), replay(t, "case", s.String()), s.String())
	}
	found.fail(t)
}

// allStrikes counts the calls of a run without faults.
func allStrikes(t *testing.T, c Case) []strike {
	t.Helper()
	calls := map[string]int{}
	for range countings {
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			w := newWorld(t, c)
			w.open(faults{})
			w.submit()
			w.untilEnd(c.within())
			for name, n := range w.life.counted() {
				calls[name] = max(calls[name], n)
			}
			if _, err := w.verdict(); err != nil {
				t.Fatalf("without any crash: %s", w.report(err))
			}
		})
	}
	var all []strike
	for _, e := range []effect{faultstore.CrashBefore, faultstore.CrashAfter, faultstore.FailBefore, faultstore.FailAfter} {
		for _, name := range slices.SortedFunc(maps.Keys(calls), tellingFirst) {
			for n := 1; n <= calls[name]; n++ {
				all = append(all, strike{name, n, e})
			}
		}
	}
	return all
}

// tellingFirst sorts the names of calls: those first that tell most about a job, since one violation is told in full.
func tellingFirst(a, b string) int {
	return cmp.Or(cmp.Compare(telling(a), telling(b)), cmp.Compare(a, b))
}

func telling(name string) int {
	for i, prefix := range []string{"Send.events", "Save", "Send.", "Claim", "Create"} {
		if strings.HasPrefix(name, prefix) {
			return i
		}
	}
	return math.MaxInt
}

// crashRun runs the case with a strike in its first life; it returns the report of a violation, or "".
func crashRun(t *testing.T, c Case, s strike) (report string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(t, c)
		w.open(faults{strike: func(called call) effect {
			if called.name == s.name && called.n == s.n {
				return s.effect
			}
			return faultstore.None
		}})
		for !w.lived() {
			w.open(faults{})
		}
		if _, err := w.verdict(); err != nil {
			report = w.report(err)
		}
	})
	return report
}

// lived lets the life that was opened go on until the job has ended and everything has come to rest, or
// its time is over. False: the engine died before, and is closed.
func (w *world) lived() bool {
	w.t.Helper()
	if w.submit() {
		w.untilEnd(w.c.within())
		if !w.life.Crashed() {
			w.rest()
		}
	}
	if !w.life.Crashed() {
		return true
	}
	w.close()
	return false
}

// violations are what a test has found.
type violations struct {
	runs  int
	first string
	names []string
}

// run counts a run; an empty report means that it had no violation.
func (v *violations) run(report, replay, name string) {
	v.runs++
	if report == "" {
		return
	}
	if v.first == "" {
		v.first = report + "\nreplay with:\n  " + replay + "\n"
	}
	v.names = append(v.names, name)
}

func (v *violations) enough() bool { return len(v.names) == maxViolations }

// fail fails the test if there are any.
func (v *violations) fail(t *testing.T) {
	t.Helper()
	if v.first != "" {
		t.Errorf("%s\n%d of the first %d runs violate the check: %s", v.first, len(v.names), v.runs, strings.Join(v.names, " "))
	}
}
