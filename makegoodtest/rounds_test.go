package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
)

const subscription = `
name: subscription
onFailure: restart 2 wait 1m
steps:
  - {name: namespace, agent: platform, action: activate, undo: {action: deactivate}}
  - {name: dns, agent: platform, action: name}
`

// Wherever the engine dies, or a call fails: what was activated in a round that failed is deactivated before the next one
// begins, once, and the second round stands.
func TestRoundsThatBeginByThemselvesSurviveEveryCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it tries every call: make whole")
	}
	CrashEverywhere(t, Case{
		YAML: []byte(subscription),
		Services: func() Services {
			platform := NewFake("platform")
			return Services{
				Ledger: platform.Ledger,
				Agents: []agent.Handler{agent.New(
					"platform",
					agent.Do("activate", func(ctx context.Context, _ any) (any, error) {
						if n := platform.Stands("activate"); n > 0 && !strings.Contains(platform.Ledger(), agent.TaskOf(ctx).Key) {
							return nil, agent.Final(fmt.Errorf("%d are active already", n))
						}
						return nil, platform.Do(ctx, "activate", agent.TaskOf(ctx).Key)
					}),
					agent.Do("deactivate", func(ctx context.Context, _ any) (any, error) {
						return nil, platform.Undo(ctx, "activate", agent.TaskOf(ctx).Undo.ForwardKey)
					}),
					agent.Do("name", func(ctx context.Context, _ any) (any, error) {
						if agent.TaskOf(ctx).Round == 1 {
							return nil, agent.Final(agent.NotApplied(errors.New("the name is taken")))
						}
						return nil, platform.Do(ctx, "name", agent.TaskOf(ctx).Key)
					}),
				)},
				Check: func(job Job) error {
					active, named := platform.Stands("activate"), platform.Stands("name")
					if job.ProcessState != "Processed" || job.Round != 2 || active != 1 || named != 1 {
						return fmt.Errorf("it is %s after %d rounds (%s), with %d active and %d named", job.ProcessState, job.Round, job.Reason, active, named)
					}
					return nil
				},
			}
		},
	})
}
