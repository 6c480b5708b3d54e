//go:build browser

package browser_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// A failure is seen where it waits, with its reason; the dry run says what would be done; and once the agent is mended, the
// repair of both jobs is two clicks, and is seen to have worked.
func TestAFailureIsSeenAndRepaired(t *testing.T) {
	w := newWorld(t)
	w.crew.fail("courier.ship", agent.Final(errors.New("no courier serves 99999")))
	w.crew.fail("payments.refund", agent.Final(errors.New("409 past the day of refunds")))
	for _, id := range []string{"o-1", "o-2"} {
		w.submit("order", id, `{}`)
		w.reaches(id, makegood.JobError)
	}
	inbox := newWindow(t, w.url)
	inbox.open("/")
	inbox.click("link", "2 jobs wait for a person")
	inbox.sees("2 jobs in 1 group", "409 past the day of refunds")
	inbox.readable()
	inbox.click("link", "Resubmit 2")
	inbox.sees("this is a dry run", "o-1", "o-2")
	inbox.readable()
	if j, err := w.client.Get(t.Context(), "o-1"); err != nil || j.ProcessState != makegood.JobError {
		t.Errorf("after the dry run o-1 is %s, %v, want it untouched", j.ProcessState, err)
	}
	w.crew.fail("payments.refund", nil)
	inbox.click("button", "Resubmit 2 jobs")
	w.reaches("o-1", makegood.JobUndone)
	w.reaches("o-2", makegood.JobUndone)
	inbox.sees("2 of 2")
	inbox.readable()
	inbox.click("link", "Jobs that wait for a person")
	inbox.sees("No job waits for a person")
}

// An agent is paused, with a reason, and resumed: meanwhile its jobs stand still, and every page says so.
func TestAnAgentIsPaused(t *testing.T) {
	w := newWorld(t)
	agents := newWindow(t, w.url)
	agents.open("/agents")
	agents.sees("inventory", "payments", "courier", "No agent and no workflow is paused")
	agents.readable()
	agents.click("link", "Pause…")
	agents.sees("Pause agent", "Attempts under way are finished")
	agents.readable()
	agents.open("/holds/agent/payments/pause")
	agents.fill("textbox", "Why", "the acquirer is down")
	agents.click("button", "Pause payments")
	agents.sees("agent payments", "the acquirer is down")
	agents.readable()
	w.submit("order", "o-1", `{}`)
	list := newWindow(t, w.url)
	list.open("/")
	list.sees("Agent payments is paused")
	list.row("o-1", "Paused")
	agents.click("button", "Resume")
	w.reaches("o-1", makegood.JobProcessed)
	list.row("o-1", "Processed")
}

// A schedule is run now, beside its fires, and paused and resumed by its switch.
func TestAScheduleIsRun(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.CreateSchedule(t.Context(), makegood.Schedule{
		Name: "yearly", Workflow: "order", Every: makegood.Duration(24 * time.Hour), Input: json.RawMessage(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	schedules := newWindow(t, w.url)
	schedules.open("/schedules")
	schedules.sees("yearly", "1, next: yearly")
	schedules.readable()
	schedules.click("button", "Run now")
	list := newWindow(t, w.url)
	list.open("/")
	list.sees("yearly:", "Processed")
	schedules.open("/schedules")
	schedules.click("switch", "Schedule yearly fires")
	schedules.sees("none, it is paused")
	schedules.click("switch", "Schedule yearly fires")
	schedules.sees("1, next: yearly")
}

// A job is submitted by the fields of its form; what the server refuses is said at its field, and what was written stays.
func TestAJobIsSubmittedByItsForm(t *testing.T) {
	w := newWorld(t)
	form := newWindow(t, w.url)
	form.open("/submit")
	form.sees("Choose the workflow of the job.", "order")
	form.readable()
	form.click("link", "refund")
	form.sees("Order", "required", "Write the input as JSON")
	form.readable()
	form.fill("textbox", "Order", "o-1")
	form.fill("spinbutton", "Amount", "20")
	form.fill("textbox", "lines", "[{}]")
	form.fill("textbox", "Id", "f-1")
	form.click("button", "Submit")
	form.sees("It was not submitted", "/0/n is missing")
	form.readable()
	form.fill("textbox", "lines", `[{"n": 1}]`)
	form.click("button", "Submit")
	form.holds(`location.pathname.endsWith("/jobs/f-1")`)
	w.reaches("f-1", makegood.JobProcessed)
	form.sees("Processed")
	form.readable()
}
