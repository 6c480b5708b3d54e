package outside

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What makegood new writes works as written, and says what its README says.
func TestAProjectWorksAsItIsWritten(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "makegood")
	root := module{t, checkout(t)}
	root.does("go", "build", "-o", binary, "./cmd/makegood")
	m := module{t, filepath.Join(t.TempDir(), "src")}
	root.wants(root.does(binary, "new", "trips", "--replace", ".", "--dir", m.folder), "wrote "+m.folder+"/template.yaml\n", "make test\n")
	if _, code := root.says(binary, "new", "trips", "--replace", ".", "--dir", m.folder); code != 1 {
		t.Errorf("written a second time, it ends with %d, want 1", code)
	}
	m.does("go", "vet", "./...")
	m.does("go", "build", "./...")
	m.wants(m.does("make", "test"), "ok  \texample.com/trips")
	m.wants(m.does("make", "demo"), "4 jobs", "Processed       2", "Undone          2", "step hotel failed: it is fully booked")
	m.wants(m.does("make", "check"), "it is complete, for the agents flights, hotels, cars, http", "workflows/trip.yaml: ok, workflow trip, 3 steps")
	m.wants(m.does("bin/trips", "--version"), "trips version ")
	m.readAgain()
	m.anAgentMore()
}

// A project without AWS works as it is written, and its command serves.
func TestALocalProjectWorksAsItIsWritten(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "makegood")
	root := module{t, checkout(t)}
	root.does("go", "build", "-tags", "makegood_local", "-o", binary, "./cmd/makegood")
	m := module{t, filepath.Join(t.TempDir(), "src")}
	root.wants(root.does(binary, "new", "trips", "--local", "--replace", ".", "--dir", m.folder), "make test\n")
	m.wants(m.does("make", "test"), "ok  \texample.com/trips")
	m.wants(m.does("make", "demo"), "4 jobs", "Processed       2", "Undone          2")
	m.wants(m.does("make", "check"), "workflows/trip.yaml: ok, workflow trip, 3 steps")
	out, code := m.says("sh", "-c", "bin/trips agent flights --stack x 2>&1")
	if code != 1 {
		t.Errorf("agent: got %d, %s", code, out)
	}
	m.wants(out, "built with the tag makegood_local")
}

// anAgentMore types what the README says, the template last.
func (m module) anAgentMore() {
	m.t.Helper()
	m.typed("README.md", func(file string) bool { return file != "template.yaml" })
	out, code := m.says("make", "check-template")
	if code == 0 {
		m.t.Error("an agent that the template does not name is not found")
	}
	m.wants(out, "lacks Metadata.Agents: the agent trains")
	m.typed("README.md", func(file string) bool { return file == "template.yaml" })
	m.wants(m.does("make", "test"), "ok  \texample.com/trips")
	m.wants(m.does("make", "check"), "it is complete, for the agents flights, hotels, cars, trains, http", "trip.yaml: ok, workflow trip, 4 steps")
	m.wants(m.does("make", "demo"), "Processed       2", "Undone          2")
}

// typed makes the changes that a document there shows, in blocks that begin with the name of the file; an empty line is
// between two places of it.
func (m module) typed(document string, chosen func(file string) bool) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.folder, document))
	if err != nil {
		m.t.Fatal(err)
	}
	changes := 0
	for _, block := range strings.Split(string(text), "```diff\n--- ")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		file, places, _ := strings.Cut(block, "\n")
		if !chosen(file) {
			continue
		}
		for _, place := range strings.Split(places, "\n\n") {
			old, with := change(place)
			m.replace(file, old, with)
			changes++
		}
	}
	if changes == 0 {
		m.t.Fatalf("%s shows no changes", document)
	}
}

// change reads a change: what is there, and what takes its place.
func change(place string) (old, with string) {
	for line := range strings.SplitSeq(place, "\n") {
		if line[0] != '+' {
			old += line[1:] + "\n"
		}
		if line[0] != '-' {
			with += line[1:] + "\n"
		}
	}
	return old, with
}

// readAgain starts what make dev runs, at a free port, and changes a workflow file.
func (m module) readAgain() {
	m.t.Helper()
	m.wants(m.does("make", "-n", "dev"), "bin/trips dev --data ./data --workflows workflows")
	dev := exec.CommandContext(m.t.Context(), filepath.Join(m.folder, "bin/trips"), "dev", "--data", "./data", "--workflows", "workflows", "--addr", "127.0.0.1:0")
	dev.Dir = m.folder
	out, err := dev.StdoutPipe()
	if err == nil {
		err = dev.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() {
		_ = dev.Process.Kill()
		_ = dev.Wait()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "everything is kept") {
	}
	m.replace("workflows/trip.yaml", "timeout: 1h", "timeout: 2h")
	if !lines.Scan() || lines.Text() != "workflow trip, 3 steps, from workflows/trip.yaml: current now, for new jobs" {
		m.t.Errorf("after a change dev says %q", lines.Text())
	}
}
