package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// A list has who holds the attempts of a job, but not of one with so many that a page of such jobs would be thousands of looks.
func TestAListReadsTheClaimsOfAJobUpToALimit(t *testing.T) {
	hold := agent.Do("hold", func(ctx context.Context, _ any) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w := open(t, embedded.Config{Agents: []agent.Handler{agent.New("a", hold)}})
	for _, c := range []struct{ steps, want int }{{20, 20}, {21, 0}} {
		var file strings.Builder
		fmt.Fprintf(&file, "name: wide-%d\nsteps:\n", c.steps)
		for i := range c.steps {
			fmt.Fprintf(&file, "  - {name: s%d, agent: a, action: hold, needs: [], timeout: 10m}\n", i)
		}
		id := fmt.Sprint("job-", c.steps)
		w.submit(w.define(file.String()), id, `{}`)
		for deadline := time.Now().Add(w.patience); ; time.Sleep(time.Millisecond) {
			j, err := w.engine.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			held, err := w.engine.Parts().Scheduler.Held(t.Context(), j)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%d of %d attempts are claimed, %v", len(held), c.steps, err)
			}
			if len(held) < c.steps {
				continue
			}
			page, err := control.New(w.engine.Parts()).Details(t.Context(), api.Filter{IDPrefix: id}, "", 10)
			if near := claimed(page); err != nil || near != c.want {
				t.Errorf("of %d attempts it read %d claims, %v, want %d", c.steps, near, err, c.want)
			}
			break
		}
	}
}

// claimed counts the steps of a page of jobs that somebody holds.
func claimed(page api.Page) (n int) {
	for _, listed := range page.Jobs {
		for _, s := range listed.Job.Steps {
			if s.LockedBy != nil {
				n++
			}
		}
	}
	return n
}
