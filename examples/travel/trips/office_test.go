package trips

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// A trip above 5,000 EUR waits until somebody has said yes; a no books nothing.
func TestAnExpensiveTripWaitsForAPerson(t *testing.T) {
	for answer, want := range map[string]makegood.ProcessState{"approve": makegood.JobProcessed, "reject": makegood.JobUndone} {
		inOffice(t, func(o office) {
			o.book("cheap", Trip{"Ada", "LH 400", "Ritz", "Mini", 500000})
			o.book("dear", Trip{"Ada", "LH 400", "Ritz", "Mini", 500001})
			time.Sleep(time.Minute)
			if booked := len(o.agency.Ledger()); booked != 4 {
				t.Errorf("before the answer %d bookings stand, want the 4 of the cheap trip", booked)
			}
			output := json.RawMessage(strconv.Quote(answer))
			if _, err := o.engine.Complete(o.t.Context(), "dear", api.StepRef{Step: "approve"}, output); err != nil {
				o.t.Fatal(err)
			}
			got, wants := o.ends([]string{"cheap", "dear"}), map[makegood.ProcessState]int{makegood.JobProcessed: 1}
			wants[want]++
			if !maps.Equal(got, wants) {
				t.Errorf("answer %s: got %v, want %v", answer, got, wants)
			}
		})
	}
}

// Two days of silence are a no.
func TestAnExpensiveTripIsNotBookedWhereNobodyAnswers(t *testing.T) {
	c := trip(t, "Mini")
	c.Input, c.Within = Trip{"Ada", "LH 400", "Ritz", "Mini", 500001}, 72*time.Hour
	if job := makegoodtest.Run(t, c); job.ProcessState != makegood.JobUndone || job.Order() != "" {
		t.Errorf("got %s after %q, want Undone, and nothing asked of a service", job.ProcessState, job.Order())
	}
}

// reconciling is one call that takes the 40 minutes of the night.
func reconciling(ctx context.Context, _ json.RawMessage) (map[string]int, error) {
	defer agent.KeepAlive(ctx)()
	select {
	case <-time.After(40 * time.Minute):
		return map[string]int{"differences": 0}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// The nightly run begins at 02:30 in Berlin, in winter and in summer, takes its 40 minutes, and is told to the office.
func TestTheNightBeginsAtHalfPastTwoInBerlin(t *testing.T) {
	told := []string{}
	books := agent.New("books", agent.Do("reconcile", reconciling))
	mail := agent.New("mail", agent.Do("tell", func(_ context.Context, in json.RawMessage) (struct{}, error) {
		told = append(told, string(in))
		return struct{}{}, nil
	}))
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	inOffice(t, func(o office) {
		first := time.Date(2000, 1, 1, 2, 30, 0, 0, berlin) // A bubble's clock begins an hour and a half before.
		time.Sleep(time.Until(first.Add(5 * time.Minute)))  // The engine looks at what lives, and finds it claimed.
		id := "nightly:" + first.UTC().Format(time.RFC3339)
		job, err := o.engine.Get(o.t.Context(), id)
		if err != nil || job.ProcessState != makegood.JobProcessing {
			o.t.Fatalf("at 02:35 the job %s is %s, %v, want Processing", id, job.ProcessState, err)
		}
		if job, err = o.engine.Wait(o.t.Context(), id); err != nil || job.ProcessState != makegood.JobProcessed || job.FailureCount != 0 {
			o.t.Errorf("got %s with %d failures, %v, want Processed with none", job.ProcessState, job.FailureCount, err)
		}
		if took := time.Since(first); took < 40*time.Minute || took > 42*time.Minute {
			o.t.Errorf("it took %s, want the 40 minutes of its step", took)
		}
		if want := `{"day":"2000-01-01","found":{"differences":0}}`; len(told) != 1 || told[0] != want {
			o.t.Errorf("the office was told %v, want %s", told, want)
		}
		for _, next := range o.fires(200) {
			want := time.Date(2000, next.In(berlin).Month(), next.In(berlin).Day(), 2, 30, 0, 0, berlin)
			if next.In(berlin).Format(time.DateOnly) == "2000-03-26" { // There is no 02:30 then.
				want = time.Date(2000, 3, 26, 3, 0, 0, 0, berlin)
			}
			if !next.Equal(want) {
				o.t.Errorf("a night begins at %s, want %s", next.In(berlin), want)
			}
		}
	}, books, mail)
}

// fires are the next times of the nightly run.
func (o office) fires(count int) []time.Time {
	o.t.Helper()
	next, err := o.engine.NextFires(o.t.Context(), "nightly", count)
	if err != nil {
		o.t.Fatal(err)
	}
	return next
}

// Somebody has written a wrong expression, which no check can see before a hotel has answered. Trips stop with what they have,
// and go on from there under a corrected definition: nothing is undone, and nothing booked twice.
func TestAWrongWorkflowIsCorrectedAndTripsGoOn(t *testing.T) {
	right := yaml(t, "trip.yaml")
	const is, was = `what: "${ .input.customer }"`, `what: "${ .steps.hotel.output.ref | tonumber }"`
	wrong := bytes.Replace(right, []byte(is), []byte(was), 1)
	if bytes.Equal(wrong, right) {
		t.Fatalf("trip.yaml has no longer %s", is)
	}
	wrong = bytes.Replace(wrong, []byte("onFailure: undo"), []byte("onFailure: stop"), 1)
	inOffice(t, func(o office) {
		if _, err := o.engine.Define(o.t.Context(), "trip.yaml", wrong); err != nil {
			o.t.Fatal(err)
		}
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			o.book(id, Trip{"Ada", "LH 400", "Ritz", "Mini", 99900})
		}
		time.Sleep(time.Minute)
		if _, err := o.engine.Define(o.t.Context(), "trip.yaml", right); err != nil {
			o.t.Fatal(err)
		}
		for _, id := range ids {
			job, err := o.engine.Get(o.t.Context(), id)
			if err != nil || job.ProcessState != makegood.JobError {
				o.t.Fatalf("%s is %s (%s), %v, want Error", id, job.ProcessState, job.Reason, err)
			}
			again := api.Request{Verb: makegood.VerbResubmit, Reason: "the expression is corrected", Definition: api.CurrentDefinition}
			if _, err := o.engine.Request(o.t.Context(), id, again); err != nil {
				o.t.Fatal(err)
			}
		}
		if got := o.ends(ids); got[makegood.JobProcessed] != len(ids) || len(o.agency.Ledger()) != 4*len(ids) {
			o.t.Errorf("got %v and %d lines, want all Processed and 4 lines each", got, len(o.agency.Ledger()))
		}
	})
}
