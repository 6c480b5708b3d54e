//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// The functions of a stack with Changes=bus: behind a rule of the bus the whole stream of each job arrives, whatever the order in
// which it is read, with no number missing.
func TestTheBusBringsEveryChangeOfAJob(t *testing.T) {
	bus, receive, ok := standin.Bus(t, fmt.Sprintf(`{"source":[%q],"detail-type":[%q]}`, awsnotify.Source, awsnotify.Changes))
	if !ok {
		return
	}
	w := open(t, options{bus: bus})
	compiled := w.order("")
	ids := []string{"c-1", "c-2", "c-3"}
	for _, id := range ids {
		if err := w.submit(compiled, id); err != nil {
			t.Fatal(err)
		}
	}
	jobs := w.ends(ids)
	heard := map[string]map[int]makegood.Change{}
	w.waitFor("every change of every job", func() bool {
		for _, body := range receive() {
			var event struct{ Detail makegood.Changes }
			if err := json.Unmarshal([]byte(body), &event); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			run := event.Detail
			if heard[run.Job] == nil {
				heard[run.Job] = map[int]makegood.Change{}
			}
			for _, c := range run.Changes {
				if was, again := heard[run.Job][c.Number]; again && was != c {
					t.Errorf("change %d of job %s was %+v, and is %+v", c.Number, run.Job, was, c)
				}
				heard[run.Job][c.Number] = c
			}
		}
		for _, id := range ids {
			j, err := w.store.Load(t.Context(), id)
			if err != nil || len(heard[id]) < j.Changes.Seq || j.Changes.Seq == 0 || len(j.Changes.Pending) > 0 {
				return false
			}
		}
		return true
	})
	for _, id := range ids {
		n := len(heard[id])
		state := ""
		for number := 1; number <= n; number++ {
			c, there := heard[id][number]
			if !there || c.Lost > 0 {
				t.Errorf("change %d of %d of job %s: %+v", number, n, id, c)
			}
			if c.Step == "" {
				state = c.To
			}
		}
		if j := jobs[id]; state != string(j.ProcessState) {
			t.Errorf("job %s is %s, and its changes say %q", id, j.ProcessState, state)
		}
	}
}
