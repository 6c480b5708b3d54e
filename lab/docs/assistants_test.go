package docs

import "testing"

// The changes of the page apply to a project as makegood new writes it, the tests of the project pass with them, and each
// command prints what the page shows.
func TestThePageForAssistantsGoesAsItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	startNewcomer(t).goesBy("docs/assistants.md", 8)
}
