package embedded_test

import (
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// An engine that died with more jobs under way than are read at a time takes them all up at its next start: none waits
// until somebody looks at its lost task, which is half an hour later here.
func TestAllUnfinishedJobsAreTakenUpAtStart(t *testing.T) {
	const jobs = 1100
	dir := t.TempDir()
	p := newTap()
	p.hold("tasks-a")
	var r troupe
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), WrapQueues: p.wrap})
	c := w.define("name: one\nsteps: [{name: charge, agent: a, startBy: 1h, timeout: 30m}]")
	todo := make(chan string)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for id := range todo {
				w.submit(c, id, `{}`)
			}
		})
	}
	for _, id := range ids(jobs) {
		todo <- id
	}
	close(todo)
	wg.Wait()
	w.stop()

	w = open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
	w.patience = 5 * time.Minute
	for _, id := range ids(jobs) {
		w.ends(id, makegood.JobProcessed)
	}
}

// Each job that was under way is touched once, and costs a start one load and one save: then its attempt is made again.
// Its reply is the second of each.
func TestAJobThatIsTakenUpCostsOneLoadAndOneSave(t *testing.T) {
	const jobs = 200
	dir, p := t.TempDir(), newTap()
	p.hold("tasks-a")
	var r troupe
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), WrapQueues: p.wrap})
	c := w.define("name: one\nsteps: [{name: charge, agent: a, startBy: 1h, timeout: 30m}]")
	for _, id := range ids(jobs) {
		w.submit(c, id, `{}`)
	}
	w.stop()

	m := newMeter()
	w = open(t, m.config(embedded.Config{Dir: dir, Agents: r.agents("a")}))
	for _, id := range ids(jobs) {
		w.ends(id, makegood.JobProcessed)
	}
	got := m.take()
	if got["Load"] != 2*jobs || got["Save"] != 2*jobs || m.tap.count("events") != 2*jobs || m.tap.count("tasks-a") != jobs {
		t.Errorf("got %v, %d events and %d tasks for %d jobs, want two loads, saves and events, and a task each", got, m.tap.count("events"), m.tap.count("tasks-a"), jobs)
	}
}
