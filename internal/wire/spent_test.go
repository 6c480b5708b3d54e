package wire_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/wire"
)

// What an attempt has cost rides with its reply, and the reply itself is the same event with it or without.
func TestAReplyBringsWhatItsAttemptHasCost(t *testing.T) {
	event := job.StepFailed{Reply: job.Reply{Step: "pay", Attempt: 1, Token: "t"}, Error: job.StepError{Message: "no"}}
	spent := job.Spent{Writes: 2, Requests: 756, Invocations: 252, GBMicros: 12_500}
	body, err := wire.EncodeReply("j", event, spent)
	if err != nil {
		t.Fatal(err)
	}
	in, err := wire.DecodeIncoming(body)
	if err != nil || in.Spent == nil || *in.Spent != spent {
		t.Errorf("got %+v, %v, want %+v", in.Spent, err, spent)
	}
	plain, err := wire.EncodeEvent("j", event)
	if err != nil || strings.Contains(plain, "spent") {
		t.Errorf("a reply without it says it: %s, %v", plain, err)
	}
	if without, err := wire.DecodeIncoming(plain); err != nil || without.Spent != nil || without.Event.Cause() != in.Event.Cause() {
		t.Errorf("got %+v, %v, want the same event, of unknown cost", without, err)
	}
}

// Numbers that cannot be are no reason to lose a reply, and no sum of them runs over.
func TestWhatAReplyHasCostHasBounds(t *testing.T) {
	in, err := wire.DecodeIncoming(`{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1,"token":"t","spent":{"writes":-5,"gbMicros":9223372036854775807}}`)
	if err != nil || in.Spent == nil || in.Spent.Writes != 0 || in.Spent.GBMicros != 1<<45 {
		t.Errorf("got %+v, %v, want no writes, and at most 2^45 µs", in.Spent, err)
	}
	if in, err := wire.DecodeIncoming(`{"v":1,"type":"DeadlinePassed","job":"j","spent":{"writes":5}}`); err != nil || in.Spent != nil {
		t.Errorf("a deadline: got %+v, %v, want nothing: it is no reply", in.Spent, err)
	}
}

// A count that cannot be read is no count: the reply it came with says that a step is done, and must not be lost.
func TestACountThatCannotBeReadLosesNoReply(t *testing.T) {
	for said, want := range map[string]*job.Spent{
		`{"writes":1.5,"gbMicros":12500.25}`: {Writes: 1, GBMicros: 12_500},
		`{"writes":99999999999999999999}`:    {Writes: 1 << 45},
		`{"writes":1e300,"requests":-1e300}`: {Writes: 1 << 45},
		`{"other":1}`:                        {},
		`{"writes":1e999}`:                   nil,
		`{"writes":"3"}`:                     nil,
		`"much"`:                             nil,
		`[1,2]`:                              nil,
		`null`:                               nil,
	} {
		in, err := wire.DecodeIncoming(`{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1,"token":"t","spent":` + said + `}`)
		if err != nil || in.Event == nil || (in.Spent == nil) != (want == nil) || want != nil && *in.Spent != *want {
			t.Errorf("%s: got %+v, %v, want the reply, with %+v", said, in.Spent, err, want)
		}
	}
}
