package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// halves answers a BatchGetItem with the first of its keys, and leaves the others unprocessed.
func halves(a asked) (int, any) {
	keys := a.RequestItems["jobs"].Keys
	answer := map[string]any{"Responses": map[string]any{"jobs": keys[:1]}}
	if len(keys) > 1 {
		answer["UnprocessedKeys"] = map[string]any{"jobs": map[string]any{"Keys": keys[1:]}}
	}
	return 200, answer
}

func entriesOf(n int) []store.Entry {
	entries := make([]store.Entry, n)
	for i := range entries {
		entries[i].Job = fmt.Sprint("a", i)
	}
	return entries
}

// DynamoDB leaves keys undone when it has had enough. Asked again at once, it would have had enough still.
func TestUnprocessedKeysAreAskedAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		s := offline(t, func(a asked) (int, any) {
			times = append(times, time.Now())
			return halves(a)
		})
		found, err := s.look(t.Context(), entriesOf(4))
		if err != nil || len(found) != 4 || found[3].ID != "a3" {
			t.Errorf("got %v, %v, want a0 to a3", found, err)
		}
		// The clock of the bubble stands still but for pauses.
		if n := len(slices.Compact(times)); len(times) != 4 || n != 4 {
			t.Errorf("got %d requests at %d times, want 4 with a pause before each but the first", len(times), n)
		}
	})
}

func TestUnprocessedKeysAreAskedABoundedNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		s := offline(t, func(a asked) (int, any) {
			requests++
			return 200, map[string]any{"UnprocessedKeys": a.RequestItems}
		})
		if found, err := s.look(t.Context(), entriesOf(3)); err == nil {
			t.Errorf("got %v, want an error", found)
		}
		if requests != maxUnprocessed {
			t.Errorf("got %d requests, want %d", requests, maxUnprocessed)
		}
	})
}

// Nobody waits for the pause any more when the context has ended.
func TestThePauseBeforeUnprocessedKeysEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		requests := 0
		s := offline(t, func(a asked) (int, any) {
			requests++
			cancel()
			return halves(a)
		})
		if _, err := s.look(ctx, entriesOf(3)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if requests != 1 {
			t.Errorf("got %d requests, want 1", requests)
		}
	})
}
