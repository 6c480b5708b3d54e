package makegoodtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// kind says of an error what the Scheduler reads in it.
func kind(err error) string {
	if err == nil {
		return "success"
	}
	f := agent.Failure(err)
	if f.Retryable {
		return "retryable " + string(f.Applied)
	}
	return "final " + string(f.Applied)
}

func TestAFakeDoesAThingOnceForAKeyAndNotAfterItsUndo(t *testing.T) {
	ctx := context.Background()
	ended, end := context.WithCancel(ctx)
	end()
	for name, test := range map[string]struct {
		fake  *makegoodtest.Fake
		calls func(f *makegoodtest.Fake) error
		want  string
		left  int
	}{
		"once": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Do(ctx, "pay", "k"))
		}, "success", 1},
		"another key": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Do(ctx, "pay", "l"))
		}, "success", 2},
		"no key": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", ""), f.Do(ctx, "pay", ""))
		}, "success", 2},
		"undone": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Undo(ctx, "back", "k"), f.Undo(ctx, "back", "k"))
		}, "success", 0},
		"after its undo": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Undo(ctx, "back", "k"), f.Do(ctx, "pay", "k"))
		}, "final no", 0},
		"keys ignored": {makegoodtest.NewFake("f").IgnoreKeys("pay"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Do(ctx, "pay", "k"), f.Undo(ctx, "back", "k"), f.Do(ctx, "pay", "k"))
		}, "success", 2},
		"keys of the undo ignored": {makegoodtest.NewFake("f").IgnoreKeys("back"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Undo(ctx, "back", "k"), f.Undo(ctx, "back", "k"))
		}, "success", -1},
		"refused": {makegoodtest.NewFake("f").Refuse("pay"), func(f *makegoodtest.Fake) error {
			return f.Do(ctx, "pay", "k")
		}, "final no", 0},
		"undo refused": {makegoodtest.NewFake("f").Refuse("back"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ctx, "pay", "k"), f.Undo(ctx, "back", "k"))
		}, "final no", 1},
		"answer lost": {makegoodtest.NewFake("f").LoseAnswers("pay", 1), func(f *makegoodtest.Fake) error {
			return f.Do(ctx, "pay", "k")
		}, "retryable unknown", 1},
		"too late": {makegoodtest.NewFake("f"), func(f *makegoodtest.Fake) error {
			return errors.Join(f.Do(ended, "pay", "k"), f.Undo(ended, "back", "k"))
		}, "retryable unknown", 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.calls(test.fake)
			if got := kind(err); got != test.want {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
			if got := test.fake.Stands("pay"); got != test.left {
				t.Errorf("pay stands %d times, want %d; the ledger:\n%s", got, test.left, test.fake.Ledger())
			}
		})
	}
}

// By HTTP it is the same service: 409 where it refuses, a broken connection where the answer is lost.
func TestAFakeSpeaksHTTP(t *testing.T) {
	fake := makegoodtest.NewFake("f").Refuse("ship").LoseAnswers("pack", 1)
	client := makegoodtest.Client(fake)
	ask := func(path, key, forward string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://anywhere"+path, bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", key)
		if forward != "" {
			request.Header.Set("Makegood-Forward-Key", forward)
		}
		response, err := client.Do(request)
		if err != nil {
			return "broken"
		}
		defer func() { _ = response.Body.Close() }()
		return fmt.Sprint(response.StatusCode)
	}
	for _, test := range []struct{ path, key, forward, want string }{
		{"/v1/pay", "k", "", "200"},
		{"/v1/pay", "k", "", "200"},
		{"/v1/back", "k/undo", "k", "200"},
		{"/v1/pay", "k", "", "409"},
		{"/v1/ship", "s", "", "409"},
		{"/v1/pack", "p", "", "broken"},
		{"/v1/pack", "p", "", "200"},
	} {
		if got := ask(test.path, test.key, test.forward); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
	if fake.Stands("pay") != 0 || fake.Stands("pack") != 1 {
		t.Errorf("the ledger:\n%s", fake.Ledger())
	}
}

// A caller that gives up has gone; the handler goes on, as a remote one does.
func TestAClientThatGivesUpLeavesItsRequestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Bool
		client := makegoodtest.Client(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			served.Store(r.Context().Err() != nil && r.Host == "anywhere")
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://anywhere/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v, want the deadline", response, err)
		}
		time.Sleep(time.Hour)
		if !served.Load() {
			t.Error("the handler did not go on, or does not know that its caller has gone")
		}
	})
}

// Where an answer redirects to is not asked.
func TestAClientFollowsNoRedirect(t *testing.T) {
	calls := 0
	client := makegoodtest.Client(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	response, err := client.Get("http://anywhere/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if calls != 1 || response.StatusCode != http.StatusFound {
		t.Errorf("got %d calls and %s, want one and 302", calls, response.Status)
	}
}

// The http agent reads the answers of the fake by its own rules.
func TestTheHTTPAgentAsksTheFake(t *testing.T) {
	fake := makegoodtest.NewFake("f").LoseAnswers("charge", 2)
	job := makegoodtest.Run(t, makegoodtest.Case{
		YAML:  []byte("name: pay\nsteps:\n  - {name: pay, agent: http, with: {url: 'https://pay.example/v1/charge', body: {amount: '${ .input.amount }'}}}\n"),
		Input: map[string]int{"amount": 3},
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{HTTP: fake, Ledger: fake.Ledger}
		},
	})
	if job.ProcessState != makegood.JobProcessed || job.FailureCount != 2 || fake.Stands("charge") != 1 {
		t.Errorf("got %s with %d failures; the ledger:\n%s", job.ProcessState, job.FailureCount, fake.Ledger())
	}
	if text := job.Attempts[0].Answer; !strings.Contains(text, "https://pay.example: the connection broke") {
		t.Errorf("the first answer: %s", text)
	}
}

// A broken connection was a connection: what was asked over it may have been done, and is undone.
func TestWhatWasAskedOverABrokenConnectionIsUndone(t *testing.T) {
	fake := makegoodtest.NewFake("f").LoseAnswers("charge", 1)
	job := makegoodtest.Run(t, makegoodtest.Case{
		YAML: []byte("name: pay\nsteps:\n  - {name: pay, agent: http, with: {url: 'https://pay.example/charge'}, retry: {attempts: 1}, undo: {with: {url: 'https://pay.example/refund'}}}\n"),
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{HTTP: fake, Ledger: fake.Ledger}
		},
	})
	if job.ProcessState != makegood.JobUndone || len(job.Attempts) != 2 || fake.Stands("charge") != 0 {
		t.Errorf("got %s after %d attempts, want Undone after 2; the ledger:\n%s", job.ProcessState, len(job.Attempts), fake.Ledger())
	}
}

func ExampleFake() {
	ctx := context.Background()
	b := makegoodtest.NewFake("bank")
	fmt.Println(b.Do(ctx, "charge", "o-1/charge/1"))
	fmt.Println(b.Do(ctx, "charge", "o-1/charge/1"))
	fmt.Println(b.Undo(ctx, "refund", "o-1/charge/1"))
	// A call that was held up, and comes after its undo.
	fmt.Println(b.Do(ctx, "charge", "o-1/charge/1"))
	fmt.Println(b.Stands("charge"), "stand")
	fmt.Println(b.Ledger())

	lost := makegoodtest.NewFake("bank").LoseAnswers("charge", 1)
	err := lost.Do(ctx, "charge", "o-2/charge/1")
	fmt.Println(errors.Unwrap(err), lost.Stands("charge"))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// bank: charge: refused
	// 0 stand
	// bank  charge     o-1/charge/1             done
	// bank  charge     o-1/charge/1             done before, not again
	// bank  refund     o-1/charge/1             undone: charge
	// bank  charge     o-1/charge/1             refused, because this key was undone
	// the connection broke before the answer came 1
}
