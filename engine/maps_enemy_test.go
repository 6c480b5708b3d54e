package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

func echo() agent.Handler {
	return agent.New("echo", agent.Do("echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		agent.Do("large", func(_ context.Context, in json.RawMessage) (any, error) { return strings.Repeat("x", 300<<10), nil }),
		agent.Do("medium", func(_ context.Context, in json.RawMessage) (any, error) { return strings.Repeat("x", 200<<10), nil }),
		agent.Do("ref", func(ctx context.Context, in json.RawMessage) (makegood.Payload, error) {
			return agent.WritePayload(ctx, "text/plain", strings.NewReader("abc"))
		}),
	)
}

func each(t *testing.T, step string) *engine.Engine {
	return openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte("name: order\nsteps:\n  - " + step + "\n")}}, echo())
}

func sub(t *testing.T, eng *engine.Engine, id, input string) makegood.Job {
	t.Helper()
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: id, Workflow: "order", Input: json.RawMessage(input)}); err != nil {
		t.Logf("submit: %v", err)
		return makegood.Job{}
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	j, err := eng.Wait(ctx, id)
	if err != nil {
		j, _ = eng.Get(t.Context(), id)
		t.Logf("STUCK %v", err)
	}
	return j
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + fmt.Sprintf("...(%d)", len(s))
	}
	return s
}

// A large output can be read by its own job alone. The list has no place for it, and the items are done.
func TestItemsWithLargeOutputsAreDone(t *testing.T) {
	for action, n := range map[string]int{"large": 2, "ref": 102} {
		eng := each(t, `{name: a, map: {over: "${ [range(.input)] }"}, agent: echo, action: `+action+`, retry: {attempts: 1}, undo: none}`)
		j := sub(t, eng, "o", fmt.Sprint(n))
		if want := fmt.Sprintf(`{"items":%d,"failed":0,"parts":[`, n); j.ProcessState != makegood.JobProcessed || !strings.HasPrefix(string(j.Steps[0].Output), want) {
			t.Errorf("%s: %s (%s) %s, want the manifest", action, j.ProcessState, j.Reason, j.Steps[0].Output)
		}
	}
}
