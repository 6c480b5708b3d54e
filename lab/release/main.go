// Command release makes what a release consists of, of the commit that is checked out: for each target an archive with
// the makegood command and a bill of its materials, the OpenAPI document of the HTTP API, the checksums of all, and for
// each kind of Linux the folder that the container image is built of. It publishes nothing, and tags nothing: the
// version is what go build stamps into the command, from the tag of the commit.
//
// The same commit gives the same bytes, whoever makes it, by the same version of Go.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/httpapi"
)

// allTargets are the systems that a release has archives for.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// tags are those of a released command: without what runs agents of a deployed stack (decision 0053). It has none of
// yours in it.
const tags = "makegood_local"

// maxCommand is how large a released command may be, in bytes.
const maxCommand = 40_000_000

// openapiFile is the OpenAPI document of the HTTP API.
const openapiFile = "openapi.json"

// beside are the files of the repository that lie in each archive beside the command.
var beside = []string{"LICENSE", "README.md", "CHANGELOG.md"}

func main() {
	out := flag.String("out", "dist", "`folder` to make it in; what it held is lost")
	targets := flag.String("targets", allTargets, "the systems, as `GOOS/GOARCH,...`")
	changed := flag.Bool("changed", false, "also of a tree with changes that are not committed, to try it; the version says so")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Makes the archives of a release.\n\nExample: go run ./lab/release -targets linux/arm64\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// A release is built from the product's go.mod alone, as its users build it, and -modfile does not work in a workspace.
	_ = os.Setenv("GOWORK", "off") // fails only for a name that is no name
	err := release{out: *out, targets: strings.Split(*targets, ","), changed: *changed}.make(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is to be made.
type release struct {
	out     string
	targets []string
	changed bool
}

func (r release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "makegood-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	var made []string
	for _, target := range r.targets {
		system, machine, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q: want GOOS/GOARCH, such as linux/arm64", target)
		}
		files, err := r.target(ctx, system, machine, filepath.Join(built, system+"-"+machine))
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		made = append(made, files...)
	}
	if err := create(filepath.Join(r.out, openapiFile), func(w io.Writer) error { _, err := w.Write(httpapi.Document()); return err }); err != nil {
		return err
	}
	made = append(made, openapiFile)
	return create(filepath.Join(r.out, "SHA256SUMS"), func(w io.Writer) error { return r.sums(w, made) })
}

// target makes the archive of a system and the bill of its materials, and returns their names.
func (r release) target(ctx context.Context, system, machine, folder string) ([]string, error) {
	command := "makegood"
	if system == "windows" {
		command += ".exe"
	}
	binary := filepath.Join(folder, command)
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=true", "-trimpath", "-tags="+tags, "-ldflags=-s -w -buildid=", "-o", binary, "./cmd/makegood")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	if err := run(build); err != nil {
		return nil, err
	}
	version, at, err := r.stamped(binary)
	if err != nil {
		return nil, err
	}
	name := strings.Join([]string{"makegood", version, system, machine}, "_")
	files := []packed{{command, binary, 0o755}}
	for _, other := range beside {
		files = append(files, packed{other, other, 0o644})
	}
	of, err := notices(ctx, system, machine)
	if err != nil {
		return nil, err
	}
	written := filepath.Join(folder, noticesFile)
	if err := os.WriteFile(written, of, 0o644); err != nil {
		return nil, err
	}
	files = append(files, packed{noticesFile, written, 0o644})
	archive, write := name+".tar.gz", writeTar
	if system == "windows" {
		archive, write = name+".zip", writeZip
	}
	if err := create(filepath.Join(r.out, archive), func(w io.Writer) error { return write(w, files, at) }); err != nil {
		return nil, err
	}
	if system == "linux" {
		if err := r.image(machine, files); err != nil {
			return nil, err
		}
	}
	materials := name + ".cdx.json"
	bill := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/go.mod", "cyclonedx-gomod", "bin", "-json", "-noserial", "-notimestamp", "-std", "-version", version, "-output", filepath.Join(r.out, materials), binary)
	if err := run(bill); err != nil {
		return nil, err
	}
	fmt.Println(filepath.Join(r.out, archive))
	return []string{archive, materials}, nil
}

// stamped returns the version of a command and the time of its commit, as go build has stamped them into it.
func (r release) stamped(binary string) (version string, at time.Time, err error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", at, err
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			at, err = time.Parse(time.RFC3339, s.Value)
		}
		if s.Key == "vcs.modified" && s.Value == "true" && !r.changed {
			return "", at, errors.New("there are changes that are not committed: git status shows them")
		}
	}
	if err == nil && (at.IsZero() || info.Main.Version == "") {
		err = errors.New("go build has stamped no version: is this a git repository?")
	}
	return info.Main.Version, at.UTC(), err
}

// image makes the folder that the container image of a machine is built of: what an archive holds, and an empty folder
// for its data.
func (r release) image(machine string, files []packed) error {
	folder := filepath.Join(r.out, "image", machine)
	if err := os.MkdirAll(filepath.Join(folder, "data"), 0o755); err != nil {
		return err
	}
	for _, f := range files {
		body, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, f.name), body, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// sums writes the checksums of files, as sha256sum -c reads them.
func (r release) sums(w io.Writer, files []string) error {
	slices.Sort(files)
	for _, name := range files {
		body, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(body), name); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command; what it said is in the error, if there is one.
func run(command *exec.Cmd) error {
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path)+" "+strings.Join(command.Args[1:], " "), err, said.Bytes())
	}
	return nil
}
