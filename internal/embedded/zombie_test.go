package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// An agent that does not stop when its engine is closed works on in the process, which does not end. Another engine on the folder
// would undo its step beside it: it is refused, and told why, until the agent has ended, or its attempt.
func TestNoEngineBeginsBesideAZombieOfTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct{ works, free time.Duration }{
		"until it ends":         {5 * time.Minute, 5 * time.Minute},
		"until its attempt has": {24 * time.Hour, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var atWork atomic.Bool
				began := time.Now()
				r := troupe{script: map[string]work{
					"charge": func(context.Context, makegood.Task) (json.RawMessage, error) {
						atWork.Store(true)
						defer atWork.Store(false)
						time.Sleep(c.works)
						return json.RawMessage(`"charged"`), nil
					},
					"refund": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
						if atWork.Load() && time.Since(began) < 30*time.Minute {
							t.Error("it is undone while it is at work")
						}
						return ok(ctx, task)
					},
				}}
				config := embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank")}
				w := open(t, config)
				w.submit(w.define("name: pay\nsteps: [{name: charge, agent: bank, timeout: 30m, undo: {action: refund}}]"), "p-1", `{}`)
				time.Sleep(time.Second)
				w.request("p-1", makegood.VerbCancel)
				w.stop()
				if took := time.Since(began); took > agentrun.StopPatience+2*time.Second {
					t.Errorf("it was closed after %v, want no patience beyond %v", took, agentrun.StopPatience)
				}
				time.Sleep(137 * time.Millisecond) // Nothing else happens at the moments that follow.
				for ; ; time.Sleep(time.Second) {
					next, err := embedded.Open(t.Context(), config)
					if err == nil {
						_ = next.Close()
						break
					}
					if want := "it was closed, and waits for what did not stop: agent bank, attempt 1 of step charge of job p-1, until "; !errors.Is(err, sqlitestore.ErrLocked) || !strings.Contains(err.Error(), want) {
						t.Fatalf("got %v, want %v that says %q", err, sqlitestore.ErrLocked, want)
					}
				}
				if after := time.Since(began).Round(10 * time.Second); after != c.free {
					t.Errorf("the folder was free after %v, want %v", after, c.free)
				}
				w = open(t, config)
				w.stored("p-1", inState(makegood.JobCancelled))
				w.stop()
				time.Sleep(24 * time.Hour)
			})
		})
	}
}
