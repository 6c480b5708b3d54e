package wire

import (
	"errors"
	"testing"
	"time"
)

func TestTheHintOfAScheduleIsReadAsItWasWritten(t *testing.T) {
	want := ScheduleDue{Schedule: "nightly", Key: time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)}
	body, err := EncodeScheduleDue(want)
	if err != nil {
		t.Fatal(err)
	}
	in, err := DecodeIncoming(body)
	if err != nil || in.Schedule == nil || *in.Schedule != want || in.Event != nil || in.Submit != nil {
		t.Errorf("got %+v, %v, want %+v", in, err, want)
	}
}

// One of a later version is dropped, like a deadline: each sweep says it again.
func TestAHintOfAScheduleThatCannotBeReadIsPoisonOrRepeated(t *testing.T) {
	for body, want := range map[string]error{
		`{"v":1,"type":"ScheduleDue"}`: ErrPoison, `{"v":1,"type":"ScheduleDue","schedule":"No Name"}`: ErrPoison,
		`{"v":1,"type":"ScheduleDue","schedule":"a","key":5}`: ErrPoison, `{"v":2,"type":"ScheduleDue"}`: ErrNewer,
	} {
		in, err := DecodeIncoming(body)
		if !errors.Is(err, want) || in.Repeats != (want == ErrNewer) {
			t.Errorf("%s: got %+v, %v, want %v", body, in, err, want)
		}
	}
}
