package agent_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

func TestFailureReadsWhatAnErrorSays(t *testing.T) {
	plain := io.ErrUnexpectedEOF
	no, unknown := makegood.AppliedNo, makegood.AppliedUnknown
	for _, c := range []struct {
		name string
		err  error
		want makegood.StepError
	}{
		{"plain", plain, makegood.StepError{Retryable: true, Applied: unknown}},
		{"final", agent.Final(plain), makegood.StepError{Applied: unknown}},
		{"not applied", agent.NotApplied(plain), makegood.StepError{Retryable: true, Applied: no}},
		{"both", agent.Final(agent.NotApplied(plain)), makegood.StepError{Applied: no}},
		{"both, the other way", agent.NotApplied(agent.Final(plain)), makegood.StepError{Applied: no}},
		{"wrapped", fmt.Errorf("book: %w", agent.Final(fmt.Errorf("call: %w", agent.NotApplied(plain)))), makegood.StepError{Applied: no}},
		{"wait", agent.NotApplied(agent.RetryAfter(3*time.Second, plain)), makegood.StepError{Retryable: true, Applied: no, RetryAfter: 3 * makegood.Second}},
		{"the longest wait", agent.RetryAfter(time.Second, agent.RetryAfter(time.Minute, plain)), makegood.StepError{Retryable: true, Applied: unknown, RetryAfter: makegood.Minute}},
		{"a pause of all", agent.SlowDown(time.Second, agent.RetryAfter(time.Minute, plain)), makegood.StepError{Retryable: true, Applied: unknown, RetryAfter: makegood.Minute, SlowDown: true, Message: "x"}},
		{"a wait below a millisecond", agent.RetryAfter(1500*time.Microsecond, plain), makegood.StepError{Retryable: true, Applied: unknown, RetryAfter: makegood.Millisecond}},
		{"a wait that has passed", agent.RetryAfter(-time.Second, plain), makegood.StepError{Retryable: true, Applied: unknown}},
		{"one of two is final", errors.Join(plain, agent.Final(plain)), makegood.StepError{Applied: unknown}},
		{"one of two is not applied", errors.Join(agent.NotApplied(plain), plain), makegood.StepError{Retryable: true, Applied: unknown}},
		{"both of two are not applied", errors.Join(agent.NotApplied(plain), fmt.Errorf("b: %w", agent.NotApplied(plain))), makegood.StepError{Retryable: true, Applied: no}},
		{"a kind", agent.Final(agent.Kind("card_declined", plain)), makegood.StepError{Applied: unknown, Kind: "card_declined"}},
		{"the outermost kind", agent.Kind("outer", fmt.Errorf("a: %w", agent.Kind("inner", plain))), makegood.StepError{Retryable: true, Applied: unknown, Kind: "outer"}},
		{"what is no kind", agent.Kind("Card Declined!", agent.Kind("inner", plain)), makegood.StepError{Retryable: true, Applied: unknown, Kind: "inner"}},
		{"two together are not applied", agent.NotApplied(errors.Join(plain, plain)), makegood.StepError{Retryable: true, Applied: no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !errors.Is(c.err, plain) {
				t.Errorf("errors.Is does not see through %v", c.err)
			}
			c.want.Message = c.err.Error()
			if got := agent.Failure(c.err); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNoErrorStaysNone(t *testing.T) {
	for name, err := range map[string]error{
		"Final": agent.Final(nil), "NotApplied": agent.NotApplied(nil), "RetryAfter": agent.RetryAfter(time.Second, nil), "SlowDown": agent.SlowDown(time.Second, nil), "Kind": agent.Kind("a", nil),
	} {
		if err != nil {
			t.Errorf("%s(nil) is %v, want nil", name, err)
		}
	}
}

// Whatever an error's text is, what is kept of it is short enough, and can be sent.
func TestAMessageIsClippedToWhatAJobKeepsAndAQueueCarries(t *testing.T) {
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"a", "é", "界", "🙂", "\xff", "\uFFFE", "\uFFFF", "\n"}
	for range 2000 {
		var b strings.Builder
		for b.Len() < limits.MaxReasonBytes-20+random.IntN(40) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		got := agent.Failure(errors.New(b.String())).Message
		if len(got) > limits.MaxReasonBytes || !utf8.ValidString(got) || strings.ContainsAny(got, "\uFFFE\uFFFF") {
			t.Fatalf("seed %d: %d bytes of %q become %d bytes of %q", seed, b.Len(), b.String(), len(got), got)
		}
		if clean := strings.ToValidUTF8(b.String(), "\uFFFD"); len(clean) > limits.MaxReasonBytes {
			if !strings.HasSuffix(got, "...") || len(got) < limits.MaxReasonBytes-3 {
				t.Fatalf("seed %d: %d bytes were cut to %d, %q", seed, len(clean), len(got), got[len(got)-10:])
			}
		}
	}
}
