package holds_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/holds"
)

// play plays outcomes to a fresh Judge: each is of a job, h healthy or s sick, one every so often. It returns after how
// many the agent is ill, and why; 0: it never is.
func play(every time.Duration, outcomes ...string) (n int, why string) {
	var j holds.Judge
	now := time.Unix(0, 0)
	for i, o := range outcomes {
		if why := j.Saw("bank", o[1:], o[0] == 's', now); why != "" {
			return i + 1, why
		}
		now = now.Add(every)
	}
	return 0, ""
}

// of returns n outcomes, of that many jobs in turn.
func of(n, jobs int, kind string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(kind, i%jobs))
	}
	return all
}

// mixed returns outcomes of so many healthy ones for each sick one.
func mixed(n, healthy int) (all []string) {
	for i := range n {
		kind := "h"
		if i%(healthy+1) == 0 {
			kind = "s"
		}
		all = append(all, fmt.Sprint(kind, i))
	}
	return all
}

func TestAnAgentIsIllWhenHalfOfItsAttemptsAreOrTenInARow(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		play  []string
		after int
	}{
		"ten in a row, of five jobs":                {time.Second, of(30, 5, "s"), 10},
		"of four jobs":                              {time.Second, of(300, 4, "s"), 0},
		"one bad job":                               {time.Second, of(300, 1, "s"), 0},
		"ten in a row, one an hour":                 {time.Hour, of(30, 30, "s"), 10},
		"nine in a row, again and again":            {2 * time.Second, append(append(of(9, 9, "s"), "h1"), of(9, 9, "s")...), 0},
		"every second one":                          {time.Second, mixed(100, 1), 21},
		"every second one, but too few":             {2 * time.Second, mixed(100, 1), 0},
		"every third one":                           {time.Second / 10, mixed(1000, 2), 0},
		"ten in a row of two jobs, and ten of many": {time.Second, append(of(10, 2, "s"), of(10, 10, "s")...), 15},
		"one bad job among healthy ones":            {time.Second, append(of(15, 15, "h"), of(300, 1, "s")...), 0},
		"all of a busy one, after it was well":      {time.Millisecond, append(of(1000, 50, "h"), of(100, 50, "s")...), 1010},
		"every second one of a busy one":            {time.Millisecond, append(of(1000, 50, "h"), mixed(300, 1)...), 1021},
		"five jobs that are bad, of a hundred well": {time.Second / 10, append(of(10, 5, "s")[:9], of(300, 100, "h")...), 0},
	} {
		if n, why := play(c.every, c.play...); n != c.after {
			t.Errorf("%s: ill after %d (%s), want %d", name, n, why, c.after)
		}
	}
}

func TestAnAgentIsJudgedAfresh(t *testing.T) {
	var j holds.Judge
	now := time.Unix(0, 0)
	for i := range 9 {
		j.Saw("bank", fmt.Sprint(i), true, now)
	}
	j.Forget("bank")
	for i := range 9 {
		if why := j.Saw("bank", fmt.Sprint(i), true, now); why != "" {
			t.Errorf("forgotten, it is ill after %d: %s", i+1, why)
		}
	}
	if why := j.Saw("bank", "x", true, now); why != "its last 10 attempts failed, of 10 jobs" {
		t.Errorf("got %q", why)
	}
	if why := j.Saw("bank", "x", true, now); why != "" {
		t.Errorf("judged ill, it is so again at once: %s", why)
	}
	if why := j.Saw("shop", "x", true, now); why != "" {
		t.Errorf("another agent is ill: %s", why)
	}
}
