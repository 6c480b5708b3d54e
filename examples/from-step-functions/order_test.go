package order

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood/makegoodtest"
)

// A job comes to an end. With the stubs it does nothing, so put in here what must be true at the end of yours: its input, and
// what your services have done. CrashEverywhere in the place of Run kills the engine at each of its calls.
func TestAJobOfTheImportedWorkflowEnds(t *testing.T) {
	job := makegoodtest.Run(t, makegoodtest.Case{
		YAML:   workflow(t, "order"),
		Input:  map[string]any{},
		Within: 800 * 24 * time.Hour,
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{
				Agents: Agents,
			}
		},
	})
	t.Logf("the job is %s after %q: %s", job.ProcessState, job.Order(), job.Reason)
}

func workflow(t *testing.T, name string) []byte {
	t.Helper()
	yaml, err := Files.ReadFile("workflows/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return yaml
}
