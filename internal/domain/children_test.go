package domain_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

func TestTheIDOfAChildSaysWhoseItIs(t *testing.T) {
	child := domain.ChildID("order:1", "0a1b2c3d4e5f6071", "reserve", 2)
	if want := "order:1~reserve~2~0a1b2c3d"; child != want {
		t.Fatalf("got %s, want %s", child, want)
	}
	grandchild := domain.ChildID(child, "ffffffffffffffff", "pick", 11)
	for id, want := range map[string]domain.Child{
		child:      {Parent: "order:1", Step: "reserve", Attempt: 2},
		grandchild: {Parent: child, Step: "pick", Attempt: 11},
	} {
		if got, ok := domain.ChildOf(id); !ok || got != want {
			t.Errorf("of %s got %+v, %v, want %+v", id, got, ok, want)
		}
		if err := domain.CheckJobID(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if makegood.CheckJobID(id) == nil {
			t.Errorf("a person may give the id %s", id)
		}
	}
	if got := domain.Nesting(grandchild); got != 2 {
		t.Errorf("%d jobs stand above %s, want 2", got, grandchild)
	}
	for _, id := range []string{"order", "a~b", "a~b~c~d", ""} {
		if c, ok := domain.ChildOf(id); ok {
			t.Errorf("%q is the id of a child: %+v", id, c)
		}
	}
	for _, id := range []string{"", "a~b/c~1~d", strings.Repeat("x", makegood.MaxJobIDBytes) + "~"} {
		if domain.CheckJobID(id) == nil {
			t.Errorf("%q can be the id of a job", id)
		}
	}
}

func TestAnIDLeavesRoomForThoseOfItsChildren(t *testing.T) {
	w := makegood.Workflow{Name: "order", Steps: []makegood.Step{{Name: "a", Agent: "x"}, {Name: "reserve", Agent: makegood.AgentWorkflow}}}
	longest := strings.Repeat("x", makegood.MaxJobIDBytes-len("~reserve~999999~00000000"))
	if err := domain.RoomForChildren(longest, w); err != nil {
		t.Error(err)
	}
	if err := domain.RoomForChildren(longest+"x", w); err == nil || !strings.Contains(err.Error(), "the limit is 104") {
		t.Errorf("got %v, want the limit", err)
	}
	if err := domain.RoomForChildren(longest+"x", makegood.Workflow{Steps: w.Steps[:1]}); err != nil {
		t.Errorf("a workflow without such steps: %v", err)
	}
}
