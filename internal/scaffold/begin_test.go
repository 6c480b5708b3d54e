package scaffold

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// Another can require a version that was published, or a commit; never a tree with changes.
func TestAProjectRequiresTheVersionOfTheCommand(t *testing.T) {
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, ""},
		{&debug.BuildInfo{Main: debug.Module{Path: makegoodModule, Version: "(devel)"}}, ""},
		{&debug.BuildInfo{Main: debug.Module{Path: makegoodModule, Version: "v1.2.3"}}, "v1.2.3"},
		{&debug.BuildInfo{Main: debug.Module{Path: makegoodModule, Version: "v1.2.4-0.20260101000000-abcdefabcdef+dirty"}}, ""},
		{&debug.BuildInfo{Main: debug.Module{Path: "a.b/c", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: makegoodModule, Version: "v1.2.3"}}}, "v1.2.3"},
		{&debug.BuildInfo{Deps: []*debug.Module{{Path: makegoodModule, Version: "v0.0.0", Replace: &debug.Module{Path: "/src"}}}}, ""},
	} {
		if got := Published(c.info); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.info, got, c.want)
		}
	}
}

// The go command builds no module below a go.work that does not list it, and a clone of Makegood has a go.work.
func TestAProjectInsideAWorkspaceSaysHowItIsBuilt(t *testing.T) {
	t.Setenv("GOWORK", "")
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.work"), []byte("go 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "trips")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := workspace(t.Context(), folder); filepath.Base(got) != "go.work" {
		t.Errorf("below a workspace: got %q, want its go.work", got)
	}
	if got := workspace(t.Context(), t.TempDir()); got != "" {
		t.Errorf("outside of any: got %q, want nothing", got)
	}
	t.Setenv("GOWORK", "off")
	if got := workspace(t.Context(), folder); got != "" {
		t.Errorf("with GOWORK=off: got %q, want nothing", got)
	}
}
