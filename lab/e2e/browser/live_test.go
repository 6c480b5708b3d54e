//go:build browser

package browser_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
)

// stays marks the document that is open, and returns a check that it is the same one still: nothing has been loaded anew.
func (w *window) stays() (check func()) {
	w.t.Helper()
	value[bool](w, "window.marked = true")
	return func() {
		w.t.Helper()
		if !value[bool](w, "window.marked === true") {
			w.t.Error("the page was loaded anew")
		}
	}
}

// row waits until the row of a job says all of this, and nothing that it said before is needed for it.
func (w *window) row(job string, says ...string) {
	w.t.Helper()
	for _, text := range says {
		w.holds(`document.getElementById("job-` + job + `")?.innerText.includes("` + text + `")`)
	}
}

// Two windows show a job as it comes, as it is worked on and as it ends, and neither loads anything anew. What the person has
// written into a field, and where the focus is, stays.
func TestTwoWindowsWatchAJob(t *testing.T) {
	w := newWorld(t)
	release := w.crew.hold("payments.charge")
	t.Cleanup(release)
	first := newWindow(t, w.url)
	second := first.beside()
	for _, each := range []*window{first, second} {
		each.open("/")
		each.find("status", "")
		each.sees("live", "No jobs yet")
		defer each.stays()()
	}
	second.fill("searchbox", "Search", "half a wo")
	w.submit("order", "o-1", `{}`)
	for _, each := range []*window{first, second} {
		each.row("o-1", "Processing", "charge")
	}
	release()
	for _, each := range []*window{first, second} {
		each.row("o-1", "Processed")
	}
	if got := value[string](second, "document.activeElement.value"); got != "half a wo" {
		t.Errorf("the field with the focus has %q, want what was written into it", got)
	}
	first.readable()
}

// A page whose engine was killed says so, and since when what it shows is not true any more; when the engine is back, it is
// live again, and shows what has become of the jobs.
func TestThePageOutlivesItsEngine(t *testing.T) {
	w := newWorld(t)
	release := w.crew.hold("payments.charge")
	t.Cleanup(release)
	w.submit("order", "o-1", `{}`)
	list := newWindow(t, w.url)
	list.excuse("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	list.open("/")
	list.row("o-1", "Processing", "charge")
	list.holds(`document.getElementById("live").innerText.trim() === "live"`)
	same := list.stays()
	w.kill()
	list.sees("reconnecting")
	list.readable()
	release()
	w.begin()
	list.holds(`document.getElementById("live").innerText.trim() === "live"`)
	w.reaches("o-1", makegood.JobProcessed)
	list.row("o-1", "Processed")
	same()
}

// A person with more windows than a browser has connections to a host sees the job in each, and the next page still opens.
func TestEightWindowsAreLive(t *testing.T) {
	w := newWorld(t)
	first := newWindow(t, w.url)
	all := []*window{first}
	for range 7 {
		all = append(all, first.beside())
	}
	asking := 0
	for _, each := range all {
		each.open("/")
		each.holds(`document.getElementById("live").dataset.state === "live"`)
		if value[bool](each, `document.getElementById("live").innerText.includes("every 3 s")`) {
			asking++
		}
	}
	if asking != 4 {
		t.Errorf("%d of 8 windows ask now and then, want 4: the others have a stream", asking)
	}
	w.submit("order", "o-1", `{}`)
	for _, each := range all {
		each.row("o-1", "Processed")
	}
	all[0].open("/agents")
	all[0].sees("payments")
}
