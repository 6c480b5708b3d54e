package engine_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// A reference to a large payload is valid in the job that has it: a child that would get one cannot begin.
func TestALargePayloadIsNotHandedOnToAChild(t *testing.T) {
	eng := openOrders(t, new(shop))
	ref, err := eng.WritePayload(t.Context(), "o", "text/plain", bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	sku, err := json.Marshal(map[string]any{"sku": ref})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o", Input: sku}); err != nil {
		t.Fatal(err)
	}
	j := waitFor(t, eng, "o")
	if j.ProcessState != makegood.JobUndone || !strings.Contains(j.Reason, "step reserve failed: its job cannot begin: ") {
		t.Errorf("got %s: %s", j.ProcessState, j.Reason)
	}
}
