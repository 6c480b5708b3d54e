package docs

import "testing"

// The changes of the page apply to a project as makegood new writes it, the tests of the project pass with them, and each
// command prints what the page shows.
func TestThePageForAssistantsGoesAsItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	n := startNewcomer(t)
	parts := blocksInOrder(read(t, "docs/assistants.md"))
	if len(parts) < 8 {
		t.Fatalf("got %d blocks", len(parts))
	}
	for _, part := range parts {
		switch part.language {
		case "diff":
			n.change(part.text)
		case "console":
			n.follow(commandsOf(part.text))
		default:
			t.Errorf("nobody knows what to do with a block of %q:\n%s", part.language, part.text)
		}
	}
}
