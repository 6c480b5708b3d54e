package trips

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/examples/travel/agency"
)

// office is an engine with the workflows of this package, in a bubble whose clock is virtual.
type office struct {
	t      *testing.T
	engine *engine.Engine
	agency *agency.Agency
}

// inOffice runs a test in the bubble, with the agents of the night in place of those outside, and ends the engine at its end.
func inOffice(t *testing.T, do func(o office), night ...agent.Handler) {
	synctest.Test(t, func(t *testing.T) {
		a := agency.New()
		options := engine.Options{Workflows: Files, Agents: append(Agents(inProcess(a)), night...)}
		for _, name := range Outside {
			if len(night) == 0 {
				options.Outside = append(options.Outside, engine.Outside{Name: name})
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		eng, err := engine.Open(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		runs := make(chan error, 1)
		go func() { runs <- eng.Run(ctx) }()
		do(office{t, eng, a})
		stop()
		if err := <-runs; err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (o office) book(id string, trip Trip) {
	o.t.Helper()
	input, err := json.Marshal(trip)
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := o.engine.Submit(o.t.Context(), makegood.Submission{Workflow: "trip", ID: id, Input: input}); err != nil {
		o.t.Fatal(err)
	}
}

// ends waits for all trips, and compares the ledger with them.
func (o office) ends(ids []string) map[makegood.ProcessState]int {
	o.t.Helper()
	ends, count := map[string]makegood.ProcessState{}, map[makegood.ProcessState]int{}
	for _, id := range ids {
		job, err := o.engine.Wait(o.t.Context(), id)
		if err != nil {
			o.t.Fatal(err)
		}
		if job.ProcessState != makegood.JobProcessed {
			o.t.Logf("%s is %s: %s", id, job.ProcessState, job.Reason)
		}
		ends[id] = job.ProcessState
		count[job.ProcessState]++
	}
	for _, wrong := range agency.Check(o.agency.Ledger(), ends) {
		o.t.Error(wrong)
	}
	return count
}

// Sixty trips are booked, one every ten seconds. In their middle the hotels are out of order for ten minutes, each time in
// another way. No trip is undone for it: all are Processed, and the ledger has each booking once.
func TestAnOutageOfTenMinutesUndoesNoTrip(t *testing.T) {
	const trips = 60
	for _, outage := range []agency.Outage{agency.Errors, agency.Refuses, agency.Hangs, agency.Loses} {
		t.Run(string(outage), func(t *testing.T) {
			inOffice(t, func(o office) {
				var ids []string
				for i := range trips {
					if i == trips/3 {
						o.down("hotels", outage, 10*time.Minute)
					}
					ids = append(ids, fmt.Sprint("trip-", i))
					o.book(ids[i], Trip{"Ada", "LH 400", "Ritz", "Mini", 99900})
					time.Sleep(10 * time.Second)
				}
				got := o.ends(ids)
				if want := map[makegood.ProcessState]int{makegood.JobProcessed: trips}; !maps.Equal(got, want) {
					t.Errorf("ends: got %v, want %v", got, want)
				}
				for _, line := range o.agency.Ledger() {
					if line.Canceled {
						t.Errorf("%s of %s was canceled", line.Ref, line.Trip)
					}
				}
				met := o.agency.Totals("hotels")
				if met.Failed < trips/2 {
					t.Errorf("only %d requests met the outage, want most trips to meet it", met.Failed)
				}
				t.Logf("%d requests met the outage, %d keys came again", met.Failed, met.Again)
			})
		})
	}
}

// down begins an outage that ends by itself.
func (o office) down(service string, outage agency.Outage, lasts time.Duration) {
	o.t.Helper()
	if err := o.agency.Break(service, outage); err != nil {
		o.t.Fatal(err)
	}
	time.AfterFunc(lasts, func() { _ = o.agency.Break(service, agency.Up) }) // it is a service
}
