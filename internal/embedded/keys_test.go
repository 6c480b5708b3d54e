package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// tellers count, for each account, the tasks that an agent does at once.
type tellers struct {
	mu  sync.Mutex
	of  map[string]*clerks
	all clerks
	// began has the times at which tasks of an account began.
	began map[string][]time.Time
}

// work does a task that takes so long, and counts it.
func (a *tellers) work(t *testing.T, d time.Duration) work {
	return func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
		var in struct{ Account string }
		if err := json.Unmarshal(task.Input, &in); err != nil || in.Account == "" {
			t.Errorf("a task has the input %s", task.Input)
		}
		a.mu.Lock()
		if a.of == nil {
			a.of, a.began = map[string]*clerks{}, map[string][]time.Time{}
		}
		if a.of[in.Account] == nil {
			a.of[in.Account] = &clerks{}
		}
		one := a.of[in.Account]
		a.began[in.Account] = append(a.began[in.Account], time.Now())
		a.mu.Unlock()
		return a.all.doing(one.work(d))(ctx, task)
	}
}

// reborn forgets the tasks of an engine that has died.
func (a *tellers) reborn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.reborn()
	for _, one := range a.of {
		one.reborn()
	}
}

// most is how many tasks of one account were under way at once.
func (a *tellers) most() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.of {
		n = max(n, one.most)
	}
	return n
}

// leftAt fails the test if attempts have permits or tickets at a gate.
func (w *world) leftAt(agent string) {
	w.t.Helper()
	if permits, waiting := w.atGate(agent); permits+waiting > 0 {
		w.t.Errorf("%d permits and %d tickets are left", permits, waiting)
	}
}

const byAccount = "${ .input.account }"

// chargesYAML charges an account, and takes that back where the next step fails.
const chargesYAML = `
name: charges
steps:
  - {name: charge, agent: bank, undo: {action: refund}}
  - {name: ship, agent: yard, undo: none}
`

func (w *world) isEnded(id string) {
	w.t.Helper()
	w.stored(id, atEnd)
}

// A limit of one for each account: of an account one task is done at a time, undos too, through deaths of the engine, and
// those of different accounts side by side. When all is done, nothing is left at any gate. With another key, and without
// the limit, all that wait go on.
func TestALimitForEachAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const accounts, each = 5, 40
		var bank tellers
		r := troupe{script: map[string]work{
			"charge": bank.work(t, time.Second), "refund": bank.work(t, time.Second),
			"ship": func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
				if task.Job[len(task.Job)-1] == '0' {
					return nil, agent.Final(errors.New("it is broken"))
				}
				return nil, nil
			},
		}}
		c := embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank", "yard"), Tick: 5 * time.Second}
		w := open(t, c)
		w.limitTo("bank", makegood.Limit{Concurrency: 1, Key: byAccount})
		compiled := w.define(chargesYAML)
		began := time.Now()
		comes := func(round int) {
			for i := range each {
				for a := range accounts {
					w.submit(compiled, fmt.Sprintf("j-%d-%d-%d", round, a, i), fmt.Sprintf(`{"account":"a%d"}`, a))
				}
			}
		}
		end := func(round int) {
			t.Helper()
			for i := range each {
				for a := range accounts {
					w.isEnded(fmt.Sprintf("j-%d-%d-%d", round, a, i))
				}
			}
		}
		comes(0)
		for range 2 {
			time.Sleep(10*time.Second + 500*time.Millisecond)
			if permits, waiting := w.atGate("bank"); permits != accounts || waiting == 0 {
				t.Errorf("%d attempts have a permit and %d wait, want %d, and more that wait", permits, waiting, accounts)
			}
			w.die()
			bank.reborn()
			w = open(t, c)
		}
		w.patience = 2 * time.Hour
		end(0)
		if took := time.Since(began); bank.most() != 1 || bank.all.most != accounts || took > 5*time.Minute {
			t.Errorf("%d tasks of an account were under way at once, %d in all, for %v; want 1, %d, and less than five minutes", bank.most(), bank.all.most, took, accounts)
		}
		time.Sleep(3 * time.Minute)
		w.leftAt("bank")
		comes(1)
		time.Sleep(5 * time.Second)
		w.limitTo("bank", makegood.Limit{Concurrency: 2, Key: "${ [.input.account, .input.none] }"})
		time.Sleep(5 * time.Second)
		w.limitTo("bank", makegood.Limit{Concurrency: 3})
		end(1)
		time.Sleep(3 * time.Minute)
		w.leftAt("bank")
		w.limitTo("bank", makegood.Limit{Concurrency: 1, Key: byAccount})
		comes(2)
		time.Sleep(5 * time.Second)
		w.limitTo("bank", makegood.Limit{})
		end(2)
		w.limitTo("bank", makegood.Limit{Concurrency: 1, Key: byAccount})
		w.leftAt("bank")
	})
}

// The items of a map stand at the gate of the value that their own input has. An input for which the expression fails
// counts as null, with those that have null.
func TestAKeyOfItemsAndOfInputsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bank tellers
		var odd clerks
		r := troupe{script: map[string]work{"charge": bank.work(t, time.Second), "look": odd.work(time.Second)}}
		w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank", "eye"), Tick: 5 * time.Second})
		w.limitTo("bank", makegood.Limit{Concurrency: 1, Key: byAccount})
		w.limitTo("eye", makegood.Limit{Concurrency: 1, Key: byAccount})
		items := w.define("name: items\nsteps:\n  - {name: charge, map: {over: \"${ [range(12)] }\", concurrency: 12}, with: {account: \"a${ .item % 3 }\"}, agent: bank, undo: none}\n")
		w.submit(items, "m", `{}`)
		look := w.define("name: look\nsteps:\n  - {name: look, agent: eye, undo: none}\n")
		inputs := []string{`7`, `{"account":null}`, `{}`, `[]`, `null`}
		for i, in := range inputs {
			w.submit(look, fmt.Sprint("o", i), in)
		}
		w.patience = time.Hour
		w.isProcessed("m")
		for i := range inputs {
			w.isProcessed(fmt.Sprint("o", i))
		}
		if bank.most() != 1 || bank.all.most != 3 || odd.most != 1 {
			t.Errorf("%d items of an account were under way at once, %d in all, and %d of null; want 1, 3 and 1", bank.most(), bank.all.most, odd.most)
		}
		time.Sleep(3 * time.Minute)
		w.leftAt("bank")
		w.leftAt("eye")
	})
}

// A rate for each account: each has tokens of its own.
func TestARateForEachAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const accounts, each = 3, 30
		var bank tellers
		r := troupe{script: map[string]work{"charge": bank.work(t, time.Millisecond)}}
		w := open(t, embedded.Config{Dir: memoryDir(t), Agents: r.agents("bank"), Tick: 5 * time.Second})
		w.limitTo("bank", makegood.Limit{Rate: "10/s", Burst: 1, Key: byAccount})
		compiled := w.define("name: trip\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
		from := time.Now()
		for i := range each {
			for a := range accounts {
				w.submit(compiled, fmt.Sprintf("j-%d-%d", a, i), fmt.Sprintf(`{"account":"a%d"}`, a))
			}
		}
		w.patience = time.Hour
		for i := range each {
			for a := range accounts {
				w.isProcessed(fmt.Sprintf("j-%d-%d", a, i))
			}
		}
		if took := time.Since(from); took > each*time.Second/10+time.Second {
			t.Errorf("it took %v, want hardly more than three seconds", took)
		}
		for account, began := range bank.began {
			for i, at := range began[1:] {
				if d := at.Sub(began[i]); d < 100*time.Millisecond {
					t.Fatalf("two attempts of %s began within %v", account, d)
				}
			}
		}
	})
}
