package embedded_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
)

func TestEnemyAQuickStepIsNotSilentBecauseTheNextIsSlow(t *testing.T) {
	for name, timeout := range map[string]string{"long": "20s", "same": "5s"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: map[string]work{"two": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					time.Sleep(5*time.Second - time.Millisecond)
					return ok(ctx, task)
				}, "one": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					time.Sleep(40 * time.Millisecond)
					return ok(ctx, task)
				}}}
				n, j := saves(t, &r, chainOf(`
  - {name: one, agent: a, timeout: 5s, retry: {attempts: 1}}
  - {name: two, agent: a, timeout: `+timeout+`, retry: {attempts: 1}}
`), embedded.Config{}, makegood.JobProcessed)
				t.Log(n, r.order(), j.FailureCount, j.Reason)
			})
		})
	}
}
