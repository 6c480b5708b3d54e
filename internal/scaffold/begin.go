package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// makegoodModule is the module that a project requires.
const makegoodModule = "github.com/makegood-dev/makegood"

// Begin is a project that is to be written, and where.
type Begin struct {
	// Project needs a name. Its version is that of this program.
	Project Project
	// Own are files that the project has beside those of Project.
	Own []File
	// Module is the path of the Go module; empty: example.com/NAME.
	Module string
	// Folder is where the project is written; empty: the project's name.
	Folder string
	// Checkout is the folder of a checkout of Makegood that the project uses; empty: it requires the published version.
	Checkout string
}

// Write writes the project, calls written with the path of each file, and completes its go.mod with go mod tidy. It
// returns the project's folder. After an error an empty folder means that no file was written, any other that some
// were.
func (b Begin) Write(ctx context.Context, written func(path string)) (folder string, err error) {
	info, _ := debug.ReadBuildInfo() // nil without modules: no version is known then
	p := b.Project
	p.Version, p.Module, folder = Published(info), cmp.Or(b.Module, "example.com/"+p.Name), cmp.Or(b.Folder, p.Name)
	if b.Checkout != "" {
		if p.Replace, err = checkout(b.Checkout); err != nil {
			return "", err
		}
	}
	files, err := p.Files()
	if err != nil {
		return "", err
	}
	files = append(files, b.Own...)
	if err := Write(folder, files, func(name string) { written(filepath.Join(folder, name)) }); err != nil {
		if errors.Is(err, ErrThere) {
			return "", err
		}
		return folder, err
	}
	if err := goModTidy(ctx, folder, p.Replace); err != nil {
		return folder, fmt.Errorf("the project is written, and its go.mod is not complete yet: %w", err)
	}
	return folder, nil
}

// WriteTo is Write for a person: it prints the path of each file, and then the commands to type in the folder, which
// end with last.
func (b Begin) WriteTo(ctx context.Context, stdout io.Writer, last string) (folder string, err error) {
	folder, err = b.Write(ctx, func(path string) { fmt.Fprintln(stdout, "wrote", path) })
	if err != nil {
		return folder, err
	}
	fmt.Fprintf(stdout, "\nnow type:\n  cd %s\n", folder)
	if file := workspace(ctx, folder); file != "" {
		fmt.Fprintf(stdout, "  export GOWORK=off   # %s does not list the new module\n", file)
	}
	fmt.Fprint(stdout, "  ", last)
	return folder, nil
}

// checkout returns the absolute path of a folder that holds the module of Makegood.
func checkout(folder string) (string, error) {
	file := filepath.Join(folder, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--replace wants a checkout of Makegood: %w", err)
	}
	if !strings.HasPrefix(string(text), "module "+makegoodModule+"\n") {
		return "", fmt.Errorf("--replace wants a checkout of Makegood: %s is of another module", file)
	}
	return filepath.Abs(folder)
}

// Published returns the version of Makegood that a program was built with. It is empty if a project cannot require
// that version: a build of a tree with changes, or of a checkout.
func Published(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	version := ""
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == makegoodModule && m.Replace == nil {
			version = m.Version
		}
	}
	if !strings.HasPrefix(version, "v") || strings.HasSuffix(version, "+dirty") {
		return ""
	}
	return version
}

// workspace returns the path of the go.work above a folder, or "" if there is none. The go command refuses to build a
// module below a go.work that does not list it.
func workspace(ctx context.Context, folder string) string {
	env := exec.CommandContext(ctx, "go", "env", "GOWORK")
	env.Dir = folder
	file, err := env.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(string(file)), "off")
}

// goModTidy completes go.mod and writes go.sum, with the user's go command. It need not look up the checksums that a
// checkout has.
func goModTidy(ctx context.Context, folder, checkout string) error {
	if checkout != "" {
		sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o644); err != nil {
			return err
		}
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir, tidy.Env = folder, append(os.Environ(), "GOWORK=off")
	if said, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy in %s: %w\n%s", folder, err, said)
	}
	return nil
}
