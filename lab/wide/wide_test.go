package main

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-works" {
		main()
		return
	}
	os.Exit(m.Run())
}

// All items are done, though the process is killed in the middle.
func TestAMapOutlivesAKill(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, os.Args[0], options{items: 3000, concurrency: 200, dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}
