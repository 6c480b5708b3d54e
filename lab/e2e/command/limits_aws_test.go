//go:build aws && linux

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// The limits of agents on a deployed stack, as an operator types them, through the doors and by their roles: a limit is set and seen, replaced
// and pruned from a file, and taken away.
func TestTheLimitsOfAgentsAreSetAndSeenOnADeployedStack(t *testing.T) {
	s := newDeployedStack(t)
	file := filepath.Join(t.TempDir(), "agents.yaml")
	if err := os.WriteFile(file, []byte("shipping: {rate: 90/m, reason: the van}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	types := func(code int, args, want string) {
		t.Helper()
		stdout, stderr := s.run(t, code, append(strings.Fields(args), "--stack", s.name)...)
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("makegood %s: got %q, %q, want %q", args, stdout, stderr, want)
		}
	}
	types(0, "agents limit inventory --concurrency 1 --reason shelf", "by "+operatorARN+": shelf; limit 1: 0 under way, 0 wait; known everywhere 5s later")
	for _, id := range []string{"o-1", "o-2"} {
		s.job(t, "submit", "order", "--id", id, "--input", `{"id":"`+id+`","customer":"c-1","total":1}`)
	}
	if task := s.task(t, "inventory"); task.Job != "o-1" {
		t.Errorf("got the task %+v, want that of o-1", task)
	}
	if j := s.job(t, "get", "o-2"); j.Steps[0].State != makegood.StepQueued {
		t.Errorf("o-2: got %+v, want its first step %s", j.Steps[0], makegood.StepQueued)
	}
	types(0, "holds", "limit 1: 1 under way, 1 wait")
	types(0, "agents permits inventory", "o-1  reserve  1 ")
	types(codeUsage, "agents permits shipping", "agent shipping has no limit")
	types(codeUsage, "agents probe inventory", "agent inventory is not paused by the breaker")

	types(codeOtherwise, "agents apply --dry-run --prune "+file, "agent inventory  would be removed: limit 1, since ")
	types(0, "agents apply "+file, "agent shipping  set: limit 90/m, 2 at one moment")
	types(0, "holds", "limit 1: 1 under way, 1 wait")
	types(0, "agents apply --prune "+file, "agent inventory  removed: limit 1, since ")
	types(codeUsage, "agents permits inventory", "agent inventory has no limit")
	types(0, "agents apply --dry-run --prune "+file, "agent shipping  unchanged: limit 90/m, 2 at one moment")
	types(0, "agents unlimit shipping", "agent shipping  has no limit any more")
	types(codeUsage, "agents unlimit shipping", "agent shipping")
	types(0, "holds --json", `{"holds":[]}`)
}
