//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The sizes of the functions, in MB: what has grown past its limit links something more.
var fileLimits = map[string]float64{"scheduler": 22, "supervisor": 17, "agent": 19, "door": 32}

const archiveLimit = 10.5

// Every function that is deployed is as small as it was, starts, and asks for an event.
func TestEveryFunctionIsSmallAndStarts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	command := exec.Command("make", "--no-print-directory", "functions", "arches="+runtime.GOARCH)
	command.Dir = "../../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make functions: %v\n%s", err, out)
	}
	built := filepath.Join(command.Dir, ".build", runtime.GOARCH)
	for name, limit := range fileLimits {
		s, err := sizeOf(filepath.Join(built, name, "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB, %.1f in an archive", name, mb(s.file), mb(s.archive))
		if mb(s.file) > limit || mb(s.archive) > archiveLimit || mb(s.archive) < 1 {
			t.Errorf("%s: %.1f MB, %.1f MB in an archive, want at most %.0f and %.1f", name, mb(s.file), mb(s.archive), limit, archiveLimit)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, built, 1, ""); err != nil {
		t.Fatal(err)
	}
	for _, f := range functions() {
		if !regexp.MustCompile(`(?m)^ *` + f.name + ` +\d+\.\d +\d+\.\d +\d+\.\d +\d+\.\d +\d+\.\d +[1-9]\d*\.\d *$`).MatchString(out.String()) {
			t.Errorf("no row for %s:\n%s", f.name, out.String())
		}
	}
}

// A function that cannot start says why.
func TestAFunctionThatDoesNotStartSaysWhy(t *testing.T) {
	sh, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := startOf(t.Context(), sh, function{name: "broken"}); err == nil {
		t.Error("got no error")
	}
	if err := run(t.Context(), &strings.Builder{}, t.TempDir(), 1, ""); err == nil || !strings.Contains(err.Error(), "make functions builds them") {
		t.Errorf("got %v", err)
	}
}
