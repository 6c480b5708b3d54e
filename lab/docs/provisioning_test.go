package docs

import (
	"slices"
	"testing"
)

// The workflow that the page shows is the one that the example runs, while its engine is killed.
func TestTheWorkflowOfProvisioningIsTheOneThatRuns(t *testing.T) {
	shown := blocks(read(t, "docs/provisioning.md"), "yaml")
	if want := read(t, "examples/provisioning/workflows/subscription.yaml"); !slices.Contains(shown, want) {
		t.Errorf("docs/provisioning.md shows %q, and the example runs %q", shown, want)
	}
}
