package sqlitestore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// See conn.prepared: what is bound bare is prepared again each time.
func TestNoLimitIsBoundBare(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bare, limits := regexp.MustCompile(`LIMIT \?([^+]|$)`), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		limits += strings.Count(string(text), "LIMIT ?+0")
		for n, line := range strings.Split(string(text), "\n") {
			if bare.MatchString(line) {
				t.Errorf("%s:%d: write LIMIT ?+0: %s", file, n+1, strings.TrimSpace(line))
			}
		}
	}
	if limits == 0 {
		t.Error("no statement has a limit that is bound: what does this test look for?")
	}
}
