package folder_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/engine/folder"
)

// A folder shows a part of a map, and the claim of its item, though the definition of the part is not stored.
func TestThePartOfAMapIsReadFromAFolder(t *testing.T) {
	dir := t.TempDir()
	began, ends := make(chan string, 1), make(chan struct{})
	shop := agent.New("shop", agent.Do("pack", func(ctx context.Context, _ string) (string, error) {
		began <- agent.TaskOf(ctx).Job
		<-ends
		return "packed", nil
	}))
	workflows := fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: lines, map: {over: "${ .input }"}, agent: shop, action: pack, undo: none}
`)}}
	eng, err := engine.Open(t.Context(), engine.Options{Dir: dir, Workflows: workflows, Agents: []agent.Handler{shop}})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	t.Cleanup(func() {
		close(ends)
		stop()
		must(t, errors.Join(<-ran, eng.Close()))
	})
	_, err = eng.Submit(t.Context(), makegood.Submission{ID: "o", Workflow: "order", Input: []byte(`["tea"]`)})
	must(t, err)
	part := <-began

	f, err := folder.Open(t.Context(), dir)
	must(t, err)
	defer f.Close()
	j, err := f.Get(t.Context(), part)
	must(t, err)
	if len(j.Steps) != 1 || j.Steps[0].State != makegood.StepClaimed {
		t.Errorf("got %+v, want its item claimed", j.Steps)
	}
	var found []string
	for l, err := range f.List(t.Context(), api.Filter{Agent: "shop"}) {
		must(t, err)
		found = append(found, l.ID)
	}
	if !slices.Contains(found, part) {
		t.Errorf("%v are found by the agent, want %s among them", found, part)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
