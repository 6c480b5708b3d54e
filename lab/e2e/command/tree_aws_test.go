//go:build aws && linux

package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Through the doors of a stack a job begins the job that does its first step, both are shown, and a cancel reaches the child: the
// policies of the doors allow all of that.
func TestATreeOnADeployedStack(t *testing.T) {
	s := newDeployedStack(t)
	for _, source := range []string{
		"name: line\nsteps: [{name: rest, agent: wait, with: {for: 1h}}]\n", "name: sale\nsteps: [{name: reserve, agent: workflow, action: line}]\n",
	} {
		c, err := workflowfile.Parse("a.yaml", []byte(source))
		if err == nil {
			err = s.store.PutDefinition(t.Context(), c.Workflow.Name, c.Hash, c.Definition)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, 0, "submit", "sale", "--id", "s-1", "--input", "{}")
	wants := func(lines ...string) {
		t.Helper()
		out, _ := s.run(t, 0, "get", "s-1", "--tree")
		got := regexp.MustCompile(`~[0-9a-f]{8}\b`).ReplaceAllString(out, "~BIRTH")
		for _, want := range lines {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%swant %q", got, want)
			}
		}
	}
	wants("s-1  sale  Pending, wanted Processed  [reserve claimed]\n  reserve: s-1~reserve~1~BIRTH  line  Pending, wanted Processed  [rest waiting until ", "cost of all  ")
	s.run(t, 0, "cancel", "s-1")
	wants("s-1  sale  Cancelled: cancelled on request  [reserve withdrawn, undo skipped]\n  reserve: s-1~reserve~1~BIRTH  line  Cancelled: job s-1 is ")
	if j := s.job(t, "get", "s-1", "--json"); j.ProcessState != makegood.JobCancelled || j.Steps[0].Child == "" {
		t.Errorf("got %s, child %q", j.ProcessState, j.Steps[0].Child)
	}
}
