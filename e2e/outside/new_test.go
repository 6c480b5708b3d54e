//go:build !race

// What is tested here runs in other processes, of which the race detector sees nothing.

package outside

import (
	"path/filepath"
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
	m.wants(m.does("make", "check"), "nothing is lacking, for the agents flights, hotels, cars, http", "trip.yaml: ok, workflow trip, 3 steps")
	m.wants(m.does("bin/trips", "--version"), "trips version ")
	m.anAgentMore()
}

// anAgentMore does what the README says: a handler, and a word in the template.
func (m module) anAgentMore() {
	m.t.Helper()
	m.replace("agents.go", "\t\tbooking(\"cars\", cars),\n", "\t\tbooking(\"cars\", cars),\n\t\tbooking(\"trains\", cars),\n")
	out, code := m.says("make", "check-template")
	if code == 0 {
		m.t.Error("an agent that the template does not name is not found")
	}
	m.wants(out, "lacks Metadata.Agents: the agent trains")
	m.replace("template.yaml", "[flights, hotels, cars, http]", "[flights, hotels, cars, http, trains]")
	m.replace("trip.yaml", "agent: cars", "agent: trains")
	m.wants(m.does("make", "check"), "nothing is lacking, for the agents flights, hotels, cars, trains, http")
	m.wants(m.does("make", "demo"), "Processed       2")
}
