package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var example = regexp.MustCompile(`(?m)^func Example\w*\(\) \{`)

// A package that users import shows them how.
func TestEveryPublicPackageHasAnExample(t *testing.T) {
	for _, folder := range public {
		if !hasExample(t, folder) {
			t.Errorf("%s has no example", folder)
		}
	}
}

func hasExample(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if example.Match(text) {
			return true
		}
	}
	return false
}
