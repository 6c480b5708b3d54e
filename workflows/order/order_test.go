package order_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/makegoodtest"
	"github.com/makegood-dev/makegood/workflows/order"
)

// sample is an order at a shop. prepare makes the shop better or worse than it is; transport is how the
// agents reach it, nil for the usual way.
func sample(prepare func(shop *makegoodtest.Fake), around func(http.RoundTripper) http.RoundTripper) makegoodtest.Case {
	return makegoodtest.Case{
		YAML:  order.YAML,
		Input: map[string]any{"id": "o-1", "customer": "c-1", "total": 9.5},
		Services: func() makegoodtest.Services {
			shop := makegoodtest.NewFake("shop")
			client := makegoodtest.Client(shop)
			if prepare != nil {
				prepare(shop)
			}
			if around != nil {
				client.Transport = around(client.Transport)
			}
			return makegoodtest.Services{
				Agents: order.Agents("http://shop", client),
				HTTP:   shop,
				Ledger: shop.Ledger,
				Check:  func(job makegoodtest.Job) error { return isGood(job, shop) },
			}
		},
	}
}

// isGood says what must be true of an order and its shop at the end: all of it or nothing, and nothing
// twice. Where a person must look, the shop may have done anything, but nothing twice.
func isGood(job makegoodtest.Job, shop *makegoodtest.Fake) error {
	for _, action := range []string{"reserve", "charge", "ship"} {
		n := shop.Stands(action)
		switch {
		case n < 0 || n > 1:
			return fmt.Errorf("the order is %s, and %s stands %d times", job.ProcessState, action, n)
		case job.ProcessState == makegood.JobProcessed && n == 0:
			return fmt.Errorf("the order is Processed, and there is no %s", action)
		case job.ProcessState == makegood.JobUndone && n == 1:
			return fmt.Errorf("the order is Undone, and the %s stands", action)
		}
	}
	return nil
}

func TestAnOrderIsReservedChargedAndShipped(t *testing.T) {
	job := makegoodtest.Run(t, sample(nil, nil))
	if job.ProcessState != makegood.JobProcessed || job.Order() != "reserve charge ship" {
		t.Errorf("got %s after %s, want Processed after reserve charge ship", job.ProcessState, job.Order())
	}
	if got := string(job.Output("charge")); got != `{"action":"charge"}` {
		t.Errorf("output of charge: got %s", got)
	}
}

// Nothing is left of an order that cannot be shipped. The undo of charge names no action, so it is undo.
func TestAnOrderThatCannotBeShippedIsUndone(t *testing.T) {
	job := makegoodtest.Run(t, sample(func(shop *makegoodtest.Fake) { shop.Refuse("ship") }, nil))
	if job.ProcessState != makegood.JobUndone || job.Order() != "reserve charge ship undo release" {
		t.Errorf("got %s after %s", job.ProcessState, job.Order())
	}
}

// The shop does what it is asked, and its answers are lost: the same key goes out again.
func TestAnAnswerThatIsLostCostsAnAttemptAndNoMoney(t *testing.T) {
	job := makegoodtest.Run(t, sample(func(shop *makegoodtest.Fake) { shop.LoseAnswers("charge", 3) }, nil))
	if job.ProcessState != makegood.JobProcessed || job.Order() != "reserve charge charge charge charge ship" {
		t.Errorf("got %s after %s", job.ProcessState, job.Order())
	}
}

func TestAnOrderIsGoodWhereverTheEngineDies(t *testing.T) {
	t.Run("shipped", func(t *testing.T) { makegoodtest.CrashEverywhere(t, sample(nil, nil)) })
	t.Run("undone", func(t *testing.T) {
		makegoodtest.CrashEverywhere(t, sample(func(shop *makegoodtest.Fake) { shop.Refuse("ship") }, nil))
	})
}

func TestAnOrderIsGoodOnABadDay(t *testing.T) {
	makegoodtest.Chaos(t, sample(nil, nil), 50)
}

// TestWhatGoesWrongIsFoundAndTold plants mistakes that no test without faults would see, and reads what
// CrashEverywhere says of them. It runs itself in a process of its own, because a test that fails cannot
// be looked at from inside.
func TestWhatGoesWrongIsFoundAndTold(t *testing.T) {
	ignored := func(shop *makegoodtest.Fake) { shop.IgnoreKeys("charge") }
	for name, test := range map[string]struct {
		planted makegoodtest.Case
		want    []string
	}{
		"a charge that ignores its key": {sample(ignored, nil), []string{
			"the order is Processed, and charge stands 2 times",
			"the engine was killed before the reply \"done\" of attempt 1 of step charge was sent",
			"attempt 1 of step charge asks charge of agent http         key job/charge/1   done",
			"-- the engine is dead, and is started again --",
			"attempt 2 of step charge asks charge of agent http  key job/charge/1  done",
			"DONE AGAIN",
		}},
		"an agent with a key of its own for each attempt": {sample(nil, keyOfItsOwn), []string{
			"the order is Processed, and reserve stands 2 times",
			"attempt 2 of step reserve asks reserve of agent inventory",
			"job/reserve/1-2",
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if os.Getenv(plantedVariable) != "" {
				makegoodtest.CrashEverywhere(t, test.planted)
				return
			}
			if job := makegoodtest.Run(t, test.planted); job.ProcessState != makegood.JobProcessed {
				t.Errorf("without faults: got %s, want Processed", job.ProcessState)
			}
			said := runPlanted(t, "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			// The line that replays says the same of just that run.
			_, line, _ := strings.Cut(said, " -run '")
			pattern, rest, _ := strings.Cut(line, "' ")
			flag, _, _ := strings.Cut(rest, "\n")
			again := runPlanted(t, "-test.run", pattern, flag)
			if !strings.Contains(again, test.want[0]) || !strings.Contains(again, "1 of the first 1 runs") {
				t.Errorf("replayed with -run %s %s, it says:\n%s", pattern, flag, again)
			}
			if t.Failed() {
				t.Logf("what it says:\n%s", said)
			}
		})
	}
}

const plantedVariable = "MAKEGOOD_PLANTED"

// runPlanted runs this test again, with the mistake, and returns what it says. It must fail.
func runPlanted(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	command.Env = append(os.Environ(), plantedVariable+"=1")
	said, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("the mistake was not found:\n%s", said)
	}
	return strings.ReplaceAll(string(said), "\n        ", "\n")
}

// keyOfItsOwn makes of the agents ones that send a new key with every attempt.
func keyOfItsOwn(inner http.RoundTripper) http.RoundTripper { return newKeys{inner} }

type newKeys struct{ http.RoundTripper }

func (k newKeys) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Idempotency-Key", request.Header.Get("Idempotency-Key")+"-"+request.Header.Get("Makegood-Attempt"))
	return k.RoundTripper.RoundTrip(request)
}
