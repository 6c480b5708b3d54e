package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// keeper keeps payloads, unless it is down.
type keeper struct {
	payload.Keeper // nil: nothing is read

	down bool
	asks int
}

func (k *keeper) Keep(context.Context, string, makegood.Payload) error {
	k.asks++
	if k.down {
		return errors.New("throttled")
	}
	return nil
}

// What a job refers to is kept anew once a day, as long as anything happens to it. Where that fails the next event tries again, and
// not the next day's: the bucket may take it before.
func TestAFailedRenewalOfAPayloadIsTriedWithTheNextEvent(t *testing.T) {
	w := newWorld(t)
	k := &keeper{}
	w.use(func(c *scheduler.Config) { c.Large, c.LargeAge = k, 7*24*time.Hour })
	compiled := w.define("name: order\nsteps: [{name: sign, agent: approval, with: {choices: [yes], question: \"Sign?\", for: 8760h}}]")
	input, err := json.Marshal(makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: compiled.Hash, Input: input}); err != nil {
		t.Fatal(err)
	}
	k.asks = 0
	for _, c := range []struct {
		after time.Duration
		down  bool
		want  int
	}{
		{6 * 24 * time.Hour, false, 0}, // nothing of it is old
		{2 * 24 * time.Hour, true, 1},
		{time.Minute, true, 2},
		{time.Minute, false, 3},
		{time.Minute, false, 3}, // once a day is enough
		{24 * time.Hour, false, 4},
	} {
		w.now, k.down = w.now.Add(c.after), c.down
		if failed := w.handle(w.record("j", job.DeadlinePassed{})); len(failed) > 0 {
			t.Errorf("%v later: the event failed, and it is not about payloads", c.after)
		}
		if k.asks != c.want {
			t.Errorf("%v later: the bucket was asked %d times, want %d", c.after, k.asks, c.want)
		}
	}
}
