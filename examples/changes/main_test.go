package main

import (
	"strings"
	"testing"
)

// Whoever hears of changes loses none although their process ends in the middle, and takes none twice.
func TestTheTableIsWhatTheJobsAre(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	if want := "the table: [Processed 16 Undone 4]\nthe jobs:  [Processed 16 Undone 4]\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got:\n%s\nwant at the end:\n%s", &out, want)
	}
}
