package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// payment is a job of one step. check is asked at the end, beside whether it was paid for once.
func payment(prepare func(*Fake), check func(Job) error) Case {
	return Case{
		Workflow: makegood.Workflow{Name: "payment", Steps: []makegood.Step{{Name: "pay", Agent: "bank", Retry: makegood.Retry{Attempts: 20}}}},
		Services: func() Services {
			bank := NewFake("bank")
			if prepare != nil {
				prepare(bank)
			}
			return Services{
				Ledger: bank.Ledger,
				Agents: []agent.Handler{agent.New("bank", agent.Do("pay", func(ctx context.Context, _ any) (any, error) {
					return nil, bank.Do(ctx, "pay", agent.TaskOf(ctx).Key)
				}))},
				Check: func(job Job) error {
					if n := bank.Stands("pay"); n != 1 {
						return fmt.Errorf("it was paid %d times", n)
					}
					if check != nil {
						return check(job)
					}
					return nil
				},
			}
		},
	}
}

func forgetful(bank *Fake) { bank.IgnoreKeys("pay") }

// Every kind of call is struck in every way.
func TestCrashEverywhereStrikesEveryCallInEveryWay(t *testing.T) {
	strikes := allStrikes(t, payment(nil, nil))
	names := map[string]bool{}
	for _, s := range strikes {
		names[s.name+"."+effectNames[s.effect]] = true
	}
	for _, name := range []string{"Create", "Load", "Save", "Claim", "PutDefinition", "Send.events", "Send.tasks-bank", "Receive.events", "Receive.tasks-bank", "Delete.events", "Delete.tasks-bank"} {
		for _, e := range effectNames[1:] {
			if !names[name+"."+e] {
				t.Errorf("no run is made for %s.%s", name, e)
			}
		}
	}
}

// What a violation is told as names the moment, the attempts of both lives and the ledger, for every
// effect that finds it.
//
// What is struck here comes before the job is saved as done, whatever goes on beside it. A deletion of
// the task does not: it races the reply, and dying behind it may come too late to do harm.
func TestAReportSaysWhatHappened(t *testing.T) {
	for _, test := range []struct{ strike, want string }{
		{"Send.events.1.killed-before", `the engine was killed before the reply "done" of attempt 1 of step pay was sent`},
		{"Save.1.killed-before", "the engine was killed before it was saved that step pay is done, that the job is Processed"},
		{"Send.events.1.fails-before", `a call failed, so that this did not happen: the reply "done" of attempt 1 of step pay was sent`},
	} {
		s, err := parseStrike(test.strike)
		if err != nil || s.String() != test.strike {
			t.Fatalf("%s: got %s, %v", test.strike, s, err)
		}
		report := crashRun(t, payment(forgetful, nil), s)
		if strings.HasSuffix(test.strike, "killed-after") || strings.Contains(test.strike, "killed-before") {
			want := []string{"it was paid 2 times", "the engine is dead, and is started again", "attempt 2 of step pay", "DONE AGAIN"}
			for _, want := range append(want, test.want) {
				if !strings.Contains(report, want) {
					t.Errorf("%s: it does not say %q:\n%s", test.strike, want, report)
				}
			}
			continue
		}
		// The reply is sent again, so nothing is wrong; what was struck is told all the same.
		if report != "" {
			t.Errorf("%s: got a violation:\n%s", test.strike, report)
		}
		told := ""
		crashRun(t, payment(nil, func(Job) error { told = "asked"; return nil }), s)
		if told == "" {
			t.Errorf("%s: the check was not asked", test.strike)
		}
	}
}

// Each effect is what its name says.
func TestEachEffectIsWhatItsNameSays(t *testing.T) {
	for fate, want := range map[effect]struct {
		executed bool
		err      error
		dead     bool
	}{
		faultstore.None:        {true, nil, false},
		faultstore.FailBefore:  {false, faultstore.ErrInjected, false},
		faultstore.FailAfter:   {true, faultstore.ErrInjected, false},
		faultstore.CrashBefore: {false, faultstore.ErrCrashed, true},
		faultstore.CrashAfter:  {true, faultstore.ErrCrashed, true},
	} {
		killed, noted := false, 0
		l := newLife(func(call) effect { return fate }, func(call, effect) { noted++ }, func() { killed = true })
		executed := false
		err := l.do("Save", "", func() error { executed = true; return nil })
		if executed != want.executed || !errors.Is(err, want.err) || l.Crashed() != want.dead || killed != want.dead {
			t.Errorf("%s: executed %t, error %v, dead %t", effectNames[fate], executed, err, l.Crashed())
		}
		if want := min(1, int(fate)); noted != want {
			t.Errorf("%s: %d faults were noted, want %d", effectNames[fate], noted, want)
		}
		if executed = false; want.dead {
			if err := l.do("Load", "", func() error { executed = true; return nil }); executed || !errors.Is(err, faultstore.ErrCrashed) {
				t.Errorf("%s: a dead engine reached its store: %v", effectNames[fate], err)
			}
		}
	}
}

// A case that is misspelt says how it is spelt.
func TestACaseThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{"Save", "Save.2", "Save.0.killed-after", "Save.x.killed-after", "Save.2.goes-on", "Save.2.eaten"} {
		if s, err := parseStrike(text); err == nil {
			t.Errorf("%q was read as %s", text, s)
		}
	}
}

// Chaos finds the service that ignores keys too, and replays what it found.
func TestChaosFindsAServiceThatIgnoresKeys(t *testing.T) {
	found, lives := 0, 1
	for seed := uint64(1); seed <= 10; seed++ {
		if report := chaosRun(t, payment(forgetful, nil), seed); report != "" {
			found++
			if !strings.Contains(report, "faults:\n") || !strings.Contains(report, "DONE AGAIN") {
				t.Errorf("seed %d does not name the faults:\n%s", seed, report)
			}
		}
		good := payment(nil, func(job Job) error {
			for _, a := range job.Attempts {
				lives = max(lives, a.Life)
			}
			return nil
		})
		if report := chaosRun(t, good, seed); report != "" {
			t.Errorf("seed %d: a good service violates:\n%s", seed, report)
		}
	}
	t.Logf("%d of 10 seeds found it; attempts came in up to %d lives", found, lives)
	if found == 0 || lives == 1 {
		t.Errorf("%d seeds found it, in up to %d lives: the days are not bad enough", found, lives)
	}
}

// A job that does not end is a violation by itself.
func TestAJobThatDoesNotEndIsAViolation(t *testing.T) {
	c := payment(nil, nil)
	c.Workflow.Steps[0].Retry = makegood.Retry{Attempts: 100, Backoff: makegood.Hour, Max: makegood.Hour}
	inner := c.Services
	c.Services = func() Services {
		s := inner()
		s.Agents = []agent.Handler{agent.New("bank", agent.Do("pay", func(context.Context, any) (any, error) { return nil, errors.New("closed") }))}
		return s
	}
	c.Within = 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		w.open(faults{})
		w.lived()
		if _, err := w.verdict(); err == nil || !strings.Contains(err.Error(), "has not ended within 10m0s: it is Pro") {
			t.Errorf("got %v", err)
		}
	})
}

// What is wrong with a case is said, and where.
func TestAWrongCaseIsRefused(t *testing.T) {
	services := func() Services { return Services{} }
	for want, c := range map[string]Case{
		"has no Services":      {},
		"input of the case":    {Services: services, Input: func() {}},
		"workflow of the case": {Services: services},
		"YAML:1":               {Services: services, YAML: []byte("nam: order\n")},
		"steps[0].agent: the name of an agent is missing": {Services: services, Workflow: makegood.Workflow{Name: "a", Steps: []makegood.Step{{Name: "b"}}}},
	} {
		if _, _, err := c.compiled(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
