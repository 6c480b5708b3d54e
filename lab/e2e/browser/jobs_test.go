//go:build browser

package browser_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// stage brings jobs about in each state that a list can show: done, under way, undone, in Error.
func stage(t *testing.T, w *world) {
	t.Helper()
	for i := range 5 {
		w.submit("order", fmt.Sprintf("o-%d", 100+i), `{"total": 12}`)
	}
	for i := range 5 {
		w.reaches(fmt.Sprintf("o-%d", 100+i), makegood.JobProcessed)
	}
	w.crew.fail("courier.ship", agent.Final(errors.New("no courier serves 99999")))
	w.submit("order", "o-200", `{}`)
	w.reaches("o-200", makegood.JobUndone)
	w.crew.fail("payments.refund", agent.Final(errors.New("409 past the day of refunds")))
	w.submit("order", "o-300", `{}`)
	w.submit("order", "o-301", `{}`)
	w.reaches("o-300", makegood.JobError)
	w.reaches("o-301", makegood.JobError)
	t.Cleanup(w.crew.hold("payments.charge"))
	w.submit("order", "o-400", `{}`)
	w.submit("approving", "a-500", `{}`)
	w.reaches("o-400", makegood.JobProcessing)
}

// The list can be read by everybody, says first what waits for a person, and is walked by keys: to the job, back, to the
// field of the search and to what it finds.
func TestTheListOfJobs(t *testing.T) {
	clerk, _ := asked(t)
	w := newWorld(t, "--reply", "clerk="+clerk)
	stage(t, w)
	list := newWindow(t, w.url)
	list.open("/")
	list.sees("2 jobs wait for a person", "o-400", "o-301", "o-200", "o-104", "a-500")
	list.readable()
	list.press("j")
	first := value[string](list, "document.activeElement.textContent")
	list.press("j")
	second := value[string](list, "document.activeElement.textContent")
	if first == "" || second == "" || second == first {
		t.Errorf("the keys lead to %q and to %q, want two jobs", first, second)
	}
	list.press("/workflow:approving\r")
	list.holds(`location.search.includes("approving")`)
	list.sees("a-500")
	list.lacks("o-400", "o-104")
}

// Whoever lets no script run sees the same, and finds by form and link.
func TestTheListOfJobsWithoutScript(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "o-1", `{}`)
	w.submit("order", "o-2", `{}`)
	w.reaches("o-1", makegood.JobProcessed)
	w.reaches("o-2", makegood.JobProcessed)
	list := newWindow(t, w.url)
	list.withoutScript()
	list.open("/")
	list.sees("No job waits for a person", "o-1", "o-2")
	list.click("link", "Undone")
	list.lacks("o-1")
	list.click("link", "Processed")
	list.sees("o-1")
	list.fill("searchbox", "Search", "o-2")
	list.click("button", "Search")
	list.sees("o-2")
}
