//go:build !race

// What is tested here runs in other processes, of which the race detector sees nothing.

package outside

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
)

// A module written by hand tests itself, has a command of its own, and embeds the engine in a server of its own.
func TestAModuleOfItsOwnEmbedsTheEngine(t *testing.T) {
	m := module{t, t.TempDir()}
	if err := os.CopyFS(m.folder, os.DirFS("testdata/travel")); err != nil {
		t.Fatal(err)
	}
	m.replace("go.mod", "=> ../../../..", "=> "+checkout(t))
	sums, err := os.ReadFile(filepath.Join(checkout(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.folder, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	m.does("go", "mod", "tidy")
	m.does("go", "vet", "./...")
	m.wants(m.does("go", "test", "./..."), "ok  \texample.com/travel")
	m.does("go", "build", "-o", "bin/", "./cmd/travel", "./cmd/server")
	m.wants(m.does("bin/travel", "validate", "trip.yaml"), "trip.yaml: ok, workflow trip, 3 steps")
	m.served()
}

// served starts its server, books trips there by package client, and compares what stands in the end.
func (m module) served() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	address := m.start(ctx)
	c, err := client.New(address + "/makegood")
	if err != nil {
		m.t.Fatal(err)
	}
	for id, want := range map[string]struct {
		car      string
		ends     makegood.ProcessState
		bookings int
	}{
		"booked": {"Mini", makegood.Processed, 3}, "undone": {"sold out", makegood.Undone, 0},
	} {
		input := json.RawMessage(`{"flight":"LH 400","hotel":"Ritz","car":"` + want.car + `"}`)
		if _, err := c.Submit(ctx, makegood.Submission{Workflow: "trip", ID: id, Input: input}); err != nil {
			m.t.Fatal(err)
		}
		job, err := c.Wait(ctx, id)
		if err != nil || job.ProcessState != want.ends {
			m.t.Errorf("trip %s: got %s (%s), %v, want %s", id, job.ProcessState, job.Reason, err, want.ends)
		}
		if bookings := m.bookings(ctx, address, id); len(bookings) != want.bookings {
			m.t.Errorf("trip %s: %v are booked, want %d", id, bookings, want.bookings)
		}
	}
}

// start starts the server, which ends with the test, and returns its address.
func (m module) start(ctx context.Context) string {
	m.t.Helper()
	server := exec.CommandContext(ctx, filepath.Join(m.folder, "bin/server"), "-data", filepath.Join(m.folder, "data"))
	server.Stderr = m.t.Output()
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // it may have ended with ctx
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.t.Fatal("the server says no address: ", err)
	}
	return strings.TrimSpace(line)
}

func (m module) bookings(ctx context.Context, address, trip string) []any {
	m.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/bookings/"+trip, http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	var bookings []any
	if err := json.NewDecoder(answer.Body).Decode(&bookings); err != nil {
		m.t.Fatal(err)
	}
	return bookings
}
