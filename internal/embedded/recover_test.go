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
	w.patience = 2 * time.Minute
	for _, id := range ids(jobs) {
		w.ends(id, makegood.JobProcessed)
	}
}
