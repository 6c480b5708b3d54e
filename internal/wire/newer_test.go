package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// While a deployment rolls, a later release may write more into a message than this one knows.
func TestAnUnknownFieldIsIgnored(t *testing.T) {
	for _, body := range messages(t) {
		more := `{"colour":{"is":"red"},` + strings.TrimPrefix(body, "{")
		if got, want := reading(more), reading(body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nwas read as %v, want %v", more, got, want)
		}
	}
}

func TestAMessageOfANewerReleaseIsNotPoison(t *testing.T) {
	for name, body := range map[string]string{
		"another version":            `{"v":2,"type":"Submitted","job":"j"}`,
		"fields of another kind":     `{"v":2,"type":"Submitted","job":{"id":"j"}}`,
		"a submission":               `{"v":2,"type":"Submit","job":{"id":"j"}}`,
		"an unknown type":            `{"v":1,"type":"StepWaits","job":"j"}`,
		"an unknown type, a version": `{"v":7,"type":"StepWaits"}`,
	} {
		in, err := DecodeIncoming(body)
		if !errors.Is(err, ErrNewer) || errors.Is(err, ErrPoison) || in.Repeats {
			t.Errorf("%s: got %v, repeats %t, want a newer release's", name, err, in.Repeats)
		}
		if _, err := DecodeTask(body); !errors.Is(err, ErrNewer) && !strings.Contains(name, "sub") {
			t.Errorf("%s among tasks: got %v, want a newer release's", name, err)
		}
	}
}

// The Supervisor of the newer release says it again each minute.
func TestADeadlineOfANewerReleaseIsSaidAgain(t *testing.T) {
	in, err := DecodeIncoming(`{"v":2,"type":"DeadlinePassed","job":"j"}`)
	if !errors.Is(err, ErrNewer) || !in.Repeats {
		t.Errorf("got %v, repeats %t, want a newer release's that comes again by itself", err, in.Repeats)
	}
}

func TestALeftMessageIsTheSameButForWhenItWasLeft(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.UTC)
	const body = ` {"v":2, "type":"StepWaits","b":[1, 2.50]}`
	left, since := Leave(body, now)
	if want := `{"leftSince":"2026-11-20T12:00:00Z","v":2, "type":"StepWaits","b":[1, 2.50]}`; left != want || !since.Equal(now.Truncate(time.Second)) {
		t.Errorf("got  %s since %s\nwant %s", left, since, want)
	}
	again, first := Leave(left, now.Add(time.Hour))
	if again != left || !first.Equal(since) {
		t.Errorf("left again: got %s since %s, want the same", again, first)
	}
}

// Whoever sends a message may write into it since when it was left. To go round for ever it must not be in front.
func TestALeftSinceOfTheSenderPutsNothingOff(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, body := range map[string]string{
		"yet to come":      `{"leftSince":"2099-01-01T00:00:00Z","v":2,"type":"X"}`,
		"unreadable":       `{"leftSince":"long ago","v":2,"type":"X"}`,
		"without an end":   `{"leftSince":"2026-11-20T12:00:00Z`,
		"behind the front": `{"v":2,"type":"X","leftSince":"2099-01-01T00:00:00Z"}`,
	} {
		left, since := Leave(body, now)
		_, later := Leave(left, now.Add(limits.MaxLeft))
		if !since.Equal(now) || !later.Equal(now) {
			t.Errorf("%s: got left since %s, and later since %s, want both times since %s", name, since, later, now)
		}
	}
}
