package docs

import (
	"strings"
	"testing"
)

// Another flag is another package in the build cache: on a machine that had compiled nothing, make build took as long
// as make demo before it.
func TestMakeBuildCompilesNothingThatTheDemoHasCompiled(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	const build = "\n\tgo build -o bin/ ./cmd/makegood ./examples/shop\n"
	if !strings.Contains(read(t, "Makefile"), build) {
		t.Errorf("Makefile: want%sand no other flag", build)
	}
	demo := read(t, "examples/demo/main.go")
	if want := `"go", "build", "-o", s.dir+string(filepath.Separator), "./cmd/makegood", "./examples/shop")`; !strings.Contains(demo, want) {
		t.Errorf("examples/demo: want %s", want)
	}
}
