package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// parcel is a job with a step that is done by a job of its own; its last step fails for good, so all are undone.
func parcel(lost int) Case {
	return Case{
		YAML: []byte(`
name: parcel
steps:
  - {name: pay, agent: shop, undo: {action: refund}}
  - {name: pack, agent: workflow, action: packing}
  - {name: send, agent: shop, undo: none}
`),
		Children: [][]byte{[]byte(`
name: packing
steps:
  - {name: pick, agent: shop, undo: {action: put_back}}
  - {name: label, agent: shop, undo: {action: tear_off}}
`)},
		Services: func() Services {
			desk := NewFake("desk").LoseAnswers("label", lost)
			does := func(action string) agent.Action {
				return agent.Do(action, func(ctx context.Context, _ any) (any, error) {
					if action == "send" {
						return nil, agent.Final(agent.NotApplied(errors.New("no van")))
					}
					return action, desk.Do(ctx, action, agent.TaskOf(ctx).Key)
				})
			}
			undoes := func(action string) agent.Action {
				return agent.Do(action, func(ctx context.Context, _ any) (any, error) {
					return nil, desk.Undo(ctx, action, agent.TaskOf(ctx).Undo.ForwardKey)
				})
			}
			return Services{
				Ledger: desk.Ledger,
				Agents: []agent.Handler{agent.New("shop", does("pay"), does("pick"), does("label"), does("send"),
					undoes("refund"), undoes("put_back"), undoes("tear_off"))},
				Check: func(job Job) error {
					for _, action := range []string{"pay", "pick", "label"} {
						if n := desk.Stands(action); n != 0 {
							return fmt.Errorf("the job is %s, and %s stands %d times", job.ProcessState, action, n)
						}
					}
					for _, child := range job.Children {
						if !child.ProcessState.Finished() || child.Parent != JobID {
							return fmt.Errorf("job %s of %q is %s", child.ID, child.Parent, child.ProcessState)
						}
					}
					if n := len(job.Children); job.ProcessState != makegood.JobUndone || n != 1 {
						return fmt.Errorf("the job is %s and has %d children, want Undone and one", job.ProcessState, n)
					}
					return nil
				},
			}
		},
	}
}

func TestTheJobThatDoesAStepIsUndoneWithIt(t *testing.T) {
	job := Run(t, parcel(0))
	if want := "pay pick label send tear_off put_back refund"; job.Order() != want {
		t.Errorf("got %s, want %s", job.Order(), want)
	}
}

// A workflow with children keeps its promises wherever the engine dies, and on bad days.
func TestChildrenAreUndoneWhereverTheEngineDies(t *testing.T) {
	CrashEverywhere(t, parcel(1))
	Chaos(t, parcel(1), 10)
}

func TestTheWorkflowOfAChildIsChecked(t *testing.T) {
	c := parcel(0)
	c.Children = [][]byte{[]byte("name: packing\n")}
	if _, _, err := c.compiled(); err == nil {
		t.Error("a child without steps was taken")
	}
	c.Children = nil
	want := `the children of the case: there is no workflow "packing", which does step pack of workflow parcel`
	if _, _, err := c.compiled(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A cancel by hand reaches the child.
func TestACancelReachesTheChild(t *testing.T) {
	c := parcel(0)
	c.Children = [][]byte{[]byte("name: packing\nsteps: [{name: pick, agent: shop, undo: {action: put_back}}, {name: rest, agent: wait, with: {for: 1h}}]\n")}
	c.Services = func() Services { s := parcel(0).Services(); s.Check = nil; return s }
	synctest.Test(t, func(t *testing.T) {
		job := Start(t, c)
		if err := job.Request(makegood.VerbCancel); err != nil {
			t.Fatal(err)
		}
		end := job.Wait()
		if end.ProcessState != makegood.JobCancelled || len(end.Children) != 1 || end.Children[0].ProcessState != makegood.JobCancelled || end.Order() != "pay pick put_back refund" {
			t.Errorf("got %s, %d children, %s", end.ProcessState, len(end.Children), end.Order())
		}
	})
}
