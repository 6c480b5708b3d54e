package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// What differs between two computers is when their files were written, and who they belong to.
func TestAnArchiveIsTheSameWhoeverMakesIt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	for name, write := range map[string]func(io.Writer, []packed, time.Time) error{"tar": writeTar, "zip": writeZip} {
		var made [2]bytes.Buffer
		for i := range made {
			file := filepath.Join(t.TempDir(), "a")
			if err := os.WriteFile(file, []byte("body"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Time{}, at.AddDate(0, 0, i)); err != nil {
				t.Fatal(err)
			}
			if err := write(&made[i], []packed{{"makegood", file, 0o755}}, at); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(made[0].Bytes(), made[1].Bytes()) {
			t.Errorf("%s: the bytes differ", name)
		}
	}
}

func TestAZipHoldsWhatItWasGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte("body"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := writeZip(&made, []packed{{"makegood.exe", file, 0o755}}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(made.Bytes()), int64(made.Len()))
	if err != nil || len(archive.File) != 1 || archive.File[0].Name != "makegood.exe" || archive.File[0].Mode() != 0o755 {
		t.Errorf("got %+v, %v, want makegood.exe of mode 0755", archive.File, err)
	}
}

// The release of this computer's system is made twice, in two clones of the commit that is checked out: its bytes are
// the same, and the command in it runs, and says the version that the archive's name says.
func TestAReleaseOfACommitRunsAndIsTheSameTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	if _, err := os.Stat("../../.git"); errors.Is(err, os.ErrNotExist) {
		t.Skip("this is no git repository, so there is no commit to release")
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	first, second := releaseOf(t, target), releaseOf(t, target)
	sums := read(t, filepath.Join(first, "SHA256SUMS"))
	if again := read(t, filepath.Join(second, "SHA256SUMS")); sums != again {
		t.Errorf("the checksums differ:\n%s\n%s", sums, again)
	}
	archives, err := filepath.Glob(filepath.Join(first, "*.tar.gz"))
	if err != nil || len(archives) != 1 || strings.Count(sums, "\n") != 3 {
		t.Fatalf("archives %v, %v, checksums\n%s\nwant one archive, and a bill and the API beside", archives, err, sums)
	}
	version := strings.Split(filepath.Base(archives[0]), "_")[1]
	folder := unpack(t, archives[0])
	said, err := exec.CommandContext(t.Context(), filepath.Join(folder, "makegood"), "--version").CombinedOutput()
	if want := "makegood version " + version + ", commit "; err != nil || !strings.HasPrefix(string(said), want) || strings.Contains(string(said), "changes") {
		t.Errorf("it says %q, %v, want %q", said, err, want)
	}
	if info, err := os.Stat(filepath.Join(folder, "makegood")); err != nil || info.Size() > maxCommand {
		t.Errorf("the command: got %d bytes, %v, want at most %d: go tool nm -size -sort size says what is large (decision 0053)", info.Size(), err, maxCommand)
	}
	wantBill(t, strings.TrimSuffix(archives[0], ".tar.gz")+".cdx.json", version)
	wantNotices(t, filepath.Join(folder, "makegood"), read(t, filepath.Join(folder, noticesFile)))
}

// wantNotices wants a notice of Go and of each module that is linked into a command.
func wantNotices(t *testing.T, command, notices string) {
	t.Helper()
	linked, err := buildinfo.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(linked.Deps, &debug.Module{Path: "Go", Version: "and its standard library"}) {
		_, rest, found := strings.Cut(notices, "=== "+m.Path+" "+m.Version+": ")
		text, _, _ := strings.Cut(rest, "\n=== ")
		if !found || len(text) < 200 {
			t.Errorf("the notices say of %s %s: %q", m.Path, m.Version, text)
		}
	}
}

// What nobody has licensed to us is not handed on in silence.
func TestAModuleWithoutALicenceIsRefused(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "README.md"), []byte("Licence: ask"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := noticesOf(new(bytes.Buffer), "a/b v1", folder); err == nil || !strings.Contains(err.Error(), "a/b v1 has no licence") {
		t.Errorf("got %v, want it named", err)
	}
}

// releaseOf makes the release of a target in a clone of the commit that is checked out.
func releaseOf(t *testing.T, target string) (dist string) {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	for _, command := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "git", "clone", "--quiet", "../..", clone),
		exec.CommandContext(t.Context(), "go", "run", "./lab/release", "-targets", target),
	} {
		if command.Args[0] == "go" {
			command.Dir = clone
			command.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, out)
		}
	}
	return filepath.Join(clone, "dist")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unpack unpacks an archive, and wants in it what is promised.
func unpack(t *testing.T, archive string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	compressed, err := gzip.NewReader(strings.NewReader(read(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if err := os.WriteFile(filepath.Join(folder, header.Name), body, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if want := append(append([]string{"makegood"}, beside...), noticesFile); !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	return folder
}

// wantBill wants a CycloneDX bill of this version that names the libraries of others.
func wantBill(t *testing.T, file, version string) {
	t.Helper()
	var bill struct {
		BOMFormat  string
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name string }
	}
	err := json.Unmarshal([]byte(read(t, file)), &bill)
	named := fmt.Sprint(bill.Components)
	if err != nil || bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Version != version || !strings.Contains(named, "modernc.org/sqlite") {
		t.Errorf("got %s of %q with %s, %v, want one of %s that names modernc.org/sqlite", bill.BOMFormat, bill.Metadata.Component.Version, named, err, version)
	}
}
