//go:build aws && linux

package lambda

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// How long a function takes that finds a process and one that does not, as figures for docs/proof.md: this
// machine says nothing about AWS's, and the start of an environment there is not only ours.
func TestColdAndWarmInvocationsAreMeasured(t *testing.T) {
	w := open(t, options{})
	w.schedule.Stop()
	of := w.order("timeout: 3s")
	const rounds = 20
	for i := range rounds {
		for _, f := range w.functions {
			f.Recycle()
		}
		for _, state := range []string{"cold", "warm"} {
			id := fmt.Sprintf("%s-%d", state, i)
			if err := w.submit(of, id); err != nil {
				t.Fatal(err)
			}
			w.ends([]string{id})
			if answer, err := w.schedule.Function.Invoke(t.Context(), w.schedule.Event, ""); err != nil || answer.Failed {
				t.Fatalf("sweep: got %s, %v, want an answer", answer.Body, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.functions)) {
		took := w.functions[name].Took()
		t.Logf("%s: cold %s, warm %s", name, spread(took.Cold), spread(took.Warm))
		if len(took.Cold) < rounds || len(took.Warm) == 0 {
			t.Errorf("%s: got %d cold starts and %d warm invocations, want %d and some", name, len(took.Cold), len(took.Warm), rounds)
		}
	}
}

// spread returns the median and the largest.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	ms := func(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }
	return fmt.Sprintf("%s (at most %s, %d times)", ms(all[len(all)/2]), ms(all[len(all)-1]), len(all))
}
