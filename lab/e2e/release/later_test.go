package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each change of the next release has its one place in the sources: the tests that build it run on stand-ins alone.
func TestEachChangeOfTheNextReleaseHasItsPlace(t *testing.T) {
	for _, c := range Later() {
		text, err := os.ReadFile(filepath.Join("../../..", c.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), c.Old); n != 1 {
			t.Errorf("%s has %d places, want 1: %q", c.File, n, c.Old)
		}
	}
}
