package makegoodtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/makegoodtest"
)

const day = 24 * time.Hour

// page returns a workflow of docs/waiting.md.
func page(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		workflow, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(workflow, "name: "+name+"\n") {
			return []byte(workflow)
		}
	}
	t.Fatalf("docs/waiting.md has no workflow %s", name)
	return nil
}

// crashEverywhere is makegoodtest.CrashEverywhere; in a short run, where a thousand runs of days take too long, one run.
func crashEverywhere(t *testing.T, c makegoodtest.Case) {
	t.Helper()
	if testing.Short() {
		makegoodtest.Run(t, c)
		return
	}
	makegoodtest.CrashEverywhere(t, c)
}

// A bank takes a transfer in, and says days later that it was made: by the completion token that it was given.
type transfers struct {
	mu   sync.Mutex
	made map[string]int
	says chan makegoodtest.Completion
}

func newTransfers() *transfers {
	return &transfers{made: map[string]int{}, says: make(chan makegoodtest.Completion, 1000)}
}

// transfer takes the order in, once for each key, and answers that it takes its time.
func (b *transfers) transfer(after time.Duration, answer makegoodtest.Completion) func(context.Context, struct{}) (any, error) {
	return func(ctx context.Context, _ struct{}) (any, error) {
		task := agent.TaskOf(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.made[task.Key]++; b.made[task.Key] == 1 {
			answer.Token = task.Completion
			time.AfterFunc(after, func() {
				b.says <- answer
				b.says <- answer // a webhook that comes twice
			})
		}
		return nil, agent.Wait(time.Now().Add(30 * day))
	}
}

// revoke takes an order back.
func (b *transfers) revoke(ctx context.Context, _ struct{}, _ *any) error {
	task := agent.TaskOf(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made[task.Undo.ForwardKey] = -1000
	return nil
}

// services are a bank and a warehouse. Nothing may be shipped before the bank has said that it was paid.
func payingServices(after time.Duration, answer makegoodtest.Completion) func() makegoodtest.Services {
	return func() makegoodtest.Services {
		b := newTransfers()
		begun := time.Now()
		var early error
		ship := func(context.Context, struct{}) (string, error) {
			if time.Since(begun) < after {
				early = fmt.Errorf("shipped after %v, paid after %v", time.Since(begun), after)
			}
			return "shipped", nil
		}
		return makegoodtest.Services{
			Agents: []agent.Handler{
				agent.New("bank", agent.Do("pay", b.transfer(after, answer)).Undo("revoke", b.revoke)),
				agent.New("warehouse", agent.Do("ship", ship)),
			},
			Completions: b.says,
			Check: func(job makegoodtest.Job) error {
				want := makegood.JobProcessed
				if answer.Err != nil {
					want = makegood.JobUndone
				}
				if job.ProcessState != want {
					return fmt.Errorf("it is %s, want %s: %s", job.ProcessState, want, job.Reason)
				}
				return early
			},
		}
	}
}

// A step is completed from outside days later, and whatever dies meanwhile, nothing that follows begins before, and the
// answer is never lost.
func TestACompletionDaysLaterSurvivesEveryCrash(t *testing.T) {
	t.Parallel() // Days of virtual time at each of hundreds of crashes: a minute of a processor.
	c := makegoodtest.Case{YAML: page(t, "paying"), Within: 5 * day, Services: payingServices(3*day, makegoodtest.Completion{Output: "paid"})}
	if job := makegoodtest.Run(t, c); string(job.Output("pay")) != `"paid"` {
		t.Errorf("output %s, want what the bank said", job.Output("pay"))
	}
	crashEverywhere(t, c)
}

// One that comes before the step was stored as waiting is taken all the same.
func TestACompletionThatIsQuickerThanTheAnswerSurvivesEveryCrash(t *testing.T) {
	crashEverywhere(t, makegoodtest.Case{
		YAML: page(t, "paying"), Services: payingServices(0, makegoodtest.Completion{Output: "paid"}),
	})
}

// One that says that it failed for good has the job undone.
func TestAFailureFromOutsideSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	crashEverywhere(t, makegoodtest.Case{
		YAML: page(t, "paying"), Within: 3 * day, Services: payingServices(day, makegoodtest.Completion{Err: agent.Final(errors.New("no such account"))}),
	})
}

func shopping(check func(makegoodtest.Job) error) func() makegoodtest.Services {
	return func() makegoodtest.Services {
		does := func(context.Context, struct{}) (string, error) { return "ok", nil }
		undoes := func(context.Context, struct{}, *string) error { return nil }
		return makegoodtest.Services{
			Agents: []agent.Handler{agent.New("shop", agent.Do("order", does).Undo("cancel", undoes), agent.Do("ship", does))},
			Check:  check,
		}
	}
}

// A wait of seven days ends when they have passed, whenever the engine dies.
func TestAWaitOfAWeekSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	c := makegoodtest.Case{YAML: page(t, "cooling"), Within: 8 * day, Services: shopping(func(job makegoodtest.Job) error {
		ship := job.Attempts[len(job.Attempts)-1]
		if job.ProcessState != makegood.JobProcessed || ship.Action != "ship" {
			return fmt.Errorf("it is %s, and its last attempt is %s", job.ProcessState, ship.Action)
		}
		if ship.At < 7*day || ship.At > 7*day+6*time.Hour {
			return fmt.Errorf("shipped after %v, want 7 days", ship.At)
		}
		return nil
	})}
	crashEverywhere(t, c)
}

// Cancelled while it waits, a job is undone at once, and its wait is no obstacle.
func TestAJobThatWaitsIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := makegoodtest.Start(t, makegoodtest.Case{YAML: page(t, "cooling"), Services: shopping(nil)})
		job.AdvanceTime(2 * day)
		if err := job.Request(makegood.VerbCancel); err != nil {
			t.Fatal(err)
		}
		if end := job.Wait(); end.ProcessState != makegood.JobCancelled || end.Order() != "order cancel" {
			t.Errorf("it is %s after %s", end.ProcessState, end.Order())
		}
	})
}

// asked is who was asked, in order, each asking once.
type asked struct {
	mu   sync.Mutex
	all  []string
	seen map[string]bool
}

func (a *asked) note(name string, q engine.Question) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := fmt.Sprintf("%s %d", name, q.N)
	if a.seen[key] {
		return false
	}
	a.seen[key] = true
	a.all = append(a.all, key)
	return true
}

// An approval of two days: the clerk is asked and reminded, the boss is asked after a day, and answers. Everybody is asked at
// every moment, whenever the engine dies, and the boss's answer counts once.
func TestAnApprovalWithEscalationSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	c := makegoodtest.Case{YAML: page(t, "approving"), Within: 3 * day, Services: func() makegoodtest.Services {
		a := &asked{seen: map[string]bool{}}
		says := make(chan makegoodtest.Completion, 100)
		services := shopping(nil)()
		services.Completions = says
		services.Ask = func(name string, q engine.Question) error {
			if q.Text != "Ship job?" || fmt.Sprint(q.Choices) != "[approve reject]" || q.Completion == "" {
				return fmt.Errorf("asked %+v", q)
			}
			if a.note(name, q) && name == "boss" {
				time.AfterFunc(time.Hour, func() { says <- makegoodtest.Completion{Token: q.Completion, Output: "approve", Request: "boss"} })
			}
			return nil
		}
		services.Check = func(job makegoodtest.Job) error {
			// The third time both are asked at once, and which of them first is not promised.
			first, second := "[clerk 1 clerk 2 clerk 3 boss 3]", "[clerk 1 clerk 2 boss 3 clerk 3]"
			if got := fmt.Sprint(a.all); got != first && got != second {
				return fmt.Errorf("asked %s, want %s or %s", got, first, second)
			}
			if job.ProcessState != makegood.JobProcessed || len(job.Attempts) == 0 {
				return fmt.Errorf("it is %s after %q, ok gave %s", job.ProcessState, job.Order(), job.Output("ok"))
			}
			return nil
		}
		return services
	}}
	crashEverywhere(t, c)
}

// A test answers by hand: another choice is refused, the first answer stands.
func TestATestAnswersAnApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := ""
		job := makegoodtest.Start(t, makegoodtest.Case{YAML: page(t, "approving"), Services: func() makegoodtest.Services {
			services := shopping(nil)()
			services.Ask = func(_ string, q engine.Question) error { token = q.Completion; return nil }
			return services
		}})
		if state := job.Job().Steps[0].State; state != makegood.StepWaiting {
			t.Errorf("it is %s, want it to wait", state)
		}
		if err := job.Complete(makegoodtest.Completion{Token: token, Output: "maybe"}); err == nil {
			t.Error("an answer that is no choice was taken")
		}
		if err := job.Complete(makegoodtest.Completion{Token: token, Output: "reject"}); err != nil {
			t.Error(err)
		}
		if err := job.Complete(makegoodtest.Completion{Token: token, Output: "approve"}); err == nil {
			t.Error("another answer was taken behind the first")
		}
		if end := job.Wait(); end.ProcessState != makegood.JobProcessed || end.Order() != "" {
			t.Errorf("it is %s after %q, want nothing shipped", end.ProcessState, end.Order())
		}
	})
}

// Nobody answers: the timeout says no.
func TestAnApprovalThatNobodyGives(t *testing.T) {
	services := shopping(nil)
	job := makegoodtest.Run(t, makegoodtest.Case{YAML: page(t, "approving"), Within: 3 * day, Services: services})
	if job.ProcessState != makegood.JobProcessed || job.Order() != "" || string(job.Output("ok")) != `{"answer":"reject"}` {
		t.Errorf("it is %s after %q, ok gave %s", job.ProcessState, job.Order(), job.Output("ok"))
	}
}

// A test settles by hand the undo that can never succeed, and its job ends Undone.
func TestATestSettlesAnUndo(t *testing.T) {
	type nothing struct{}
	ok := func(context.Context, nothing) (nothing, error) { return nothing{}, nil }
	bank := agent.New("bank",
		agent.Do("charge", ok).Undo("refund", func(context.Context, nothing, *nothing) error { return agent.Final(errors.New("closed")) }),
		agent.Do("ship", func(context.Context, nothing) (nothing, error) { return nothing{}, agent.Final(errors.New("lost")) }),
	)
	synctest.Test(t, func(t *testing.T) {
		job := makegoodtest.Start(t, makegoodtest.Case{
			YAML:     []byte("name: order\nsteps:\n  - {name: charge, agent: bank, undo: {action: refund}}\n  - {name: ship, agent: bank}\n"),
			Services: func() makegoodtest.Services { return makegoodtest.Services{Agents: []agent.Handler{bank}} },
		})
		if end := job.Wait(); end.ProcessState != makegood.JobError {
			t.Fatalf("it is %s, want Error", end.ProcessState)
		}
		if err := job.Settle(api.StepRef{Step: "charge"}, api.SettleOptions{}); err == nil {
			t.Error("a step was settled whose job is being undone")
		}
		if err := job.Settle(api.StepRef{Step: "charge", Undo: true}, api.SettleOptions{Reason: "by bank transfer"}); err != nil {
			t.Error(err)
		}
		end := job.Wait()
		if undo := end.Steps[0].Undo; end.ProcessState != makegood.JobUndone || undo == nil || undo.Settled == nil || undo.Settled.Reason != "by bank transfer" {
			t.Errorf("it is %s, %+v, want it Undone and settled", end.ProcessState, undo)
		}
	})
}
