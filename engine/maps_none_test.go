package engine_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// A map without items has no effect that could stand: its undo is done.
func TestAMapWithoutItemsIsUndone(t *testing.T) {
	eng := openMap(t, &stock{}, "")
	runMap(t, eng, 0)
	if _, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbUndo}); err != nil {
		t.Fatal(err)
	}
	j, err := eng.Wait(t.Context(), "o-1")
	if err != nil || j.ProcessState != makegood.JobUndone || strings.Contains(j.Reason, "reserve") || j.Steps[0].Items == nil || j.Steps[0].Items.All != 0 {
		t.Errorf("%s: %s, %v", j.ProcessState, j.Reason, err)
	}
}
