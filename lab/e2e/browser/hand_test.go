//go:build browser

package browser_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// A job whose id is as long as one may be, and whose history has words that do not break by themselves, is read at 390 and at 1440 px
// without scrolling sideways.
func TestLongNamesAreReadWithoutScrollingSideways(t *testing.T) {
	w := newWorld(t)
	unbroken := "https://courier.example.com/v1/shipments/" + strings.Repeat("a", 200)
	w.crew.fail("courier.ship", errors.New("connection refused while asking "+unbroken))
	w.crew.fail("payments.refund", agent.Final(errors.New(strings.Repeat("b", 300))))
	long := "booking:" + strings.Repeat("0123456789", 12)
	w.submit("order", long, `{}`)
	w.reaches(long, makegood.JobError)
	for _, path := range []string{"/jobs/" + long, "/jobs/" + long + "/ask/resubmit?edit=true", "/"} {
		page := newWindow(t, w.url)
		page.open(path)
		page.holds(`document.querySelector("h1")`)
		page.readable()
	}
}

// x selects the row that the keys have come to; the bar names how many are selected, and one of its verbs leads to the dry run of those.
func TestRowsAreSelectedByXAndAskedTogether(t *testing.T) {
	w := newWorld(t)
	release := w.crew.hold("payments.charge")
	defer release()
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		w.submit("order", id, `{}`)
		w.reaches(id, makegood.JobProcessing)
	}
	list := newWindow(t, w.url)
	list.open("/")
	list.holds(`document.querySelectorAll("[data-row]").length === 3`)
	list.holds(`getComputedStyle(document.querySelector(".bulk")).display === "none"`)
	list.press("jxjx")
	list.sees("2 selected")
	list.readable()
	chosen := value[string](list, `[...document.querySelectorAll("td :checked")].map(c => c.value).join(" ")`)
	list.click("button", "Pause…")
	list.sees("Pause 2 jobs", "this is a dry run")
	list.readable()
	list.click("button", "Pause 2 jobs")
	list.sees("2 of 2")
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		j, err := w.client.Get(t.Context(), id)
		if err != nil || j.Paused != strings.Contains(chosen, id) {
			t.Errorf("%s is paused: %v, %v; those selected were %s", id, j.Paused, err, chosen)
		}
	}
}

// The page shows times in UTC. The key z switches all times of the page to local time; updates of the page and new windows keep the
// choice, and tooltips stay in UTC.
func TestTimesAreSwitchedToLocal(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "o-1", `{}`)
	born := w.reaches("o-1", makegood.JobProcessed).CreatedAt.UTC()
	list := newWindow(t, w.url)
	call(list, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}) // 5 h 30 m ahead
	list.open("/")
	utc, there := born.Format("15:04:05"), born.Add(5*60*60e9+30*60e9)
	at := `document.querySelector("#job-o-1 .c-at time")`
	list.holds(at + `.textContent === "` + utc + `"`)
	list.sees("Times are UTC.")
	list.click("button", "Times are UTC: show local time")
	want := there.Format("15:04:05")
	list.holds(at + `.textContent.startsWith("` + want[:5] + `")`)
	list.holds(at + `.title === "` + born.Format("2 Jan 2006 15:04:05") + ` UTC"`)
	list.sees("Times are of Asia/")
	w.submit("order", "o-2", `{}`)
	w.reaches("o-2", makegood.JobProcessed)
	list.row("o-2", "Processed")
	list.holds(at + `.textContent.startsWith("` + want[:5] + `")`)
	list.open("/jobs/o-1")
	list.sees("done " + want[:5])
	list.readable()
	list.press("z")
	list.sees("done " + utc[:5])
}

// The icon of a step at work is in its box in the graph, also while it moves: it once turned about the origin of the graph.
func TestTheIconOfAStepAtWorkIsInItsBox(t *testing.T) {
	w := newWorld(t)
	release := w.crew.hold("payments.charge")
	defer release()
	w.submit("order", "o-1", `{}`)
	page := newWindow(t, w.url)
	call(page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "no-preference"}}})
	page.open("/jobs/o-1")
	page.sees("charge is at work")
	page.holds(`(() => {
		const box = document.querySelector(".graph .processing .box").getBoundingClientRect()
		const icon = document.querySelector(".graph .processing .i")
		const moves = icon.querySelector("use").getAnimations({subtree: true})
		if (moves.length === 0) return false
		return moves.every(m => [0, 300, 700, 1200, 2000].every(at => {
			m.pause(); m.currentTime = at
			return [icon, icon.querySelector("use")].every(el => {
				const r = el.getBoundingClientRect()
				return r.width > 8 && r.left >= box.left && r.right <= box.right && r.top >= box.top && r.bottom <= box.bottom
			})
		}))
	})()`)
}

// The badge counts open questions, and the inbox shows each question with its answers. A person gives one answer to all of them after a
// dry run, and each job keeps the person's reason.
func TestQuestionsAreAnsweredInTheInbox(t *testing.T) {
	clerk, _ := asked(t)
	w := newWorld(t, "--reply", "clerk="+clerk)
	for _, id := range []string{"a-1", "a-2", "a-3"} {
		w.submit("approving", id, `{}`)
	}
	inbox := newWindow(t, w.url)
	inbox.open("/errors")
	inbox.sees("approving · ok asks", "answers: approve, reject", "See 3 jobs")
	inbox.holds(`document.querySelector("#nav-errors").textContent.includes("3")`)
	inbox.readable()
	inbox.click("link", "approve to all…")
	inbox.sees(`Answer "approve" to 3 jobs?`, "this is a dry run")
	inbox.readable()
	inbox.fill("textbox", "Why", "in stock again")
	inbox.click("button", `Answer "approve" to 3 jobs`)
	inbox.sees("3 of 3")
	for _, id := range []string{"a-1", "a-2", "a-3"} {
		w.reaches(id, makegood.JobProcessed)
		j, err := w.client.Get(t.Context(), id)
		if err != nil || j.Steps[0].CompletedWhy == nil || *j.Steps[0].CompletedWhy != "in stock again" {
			t.Errorf("%s: got %+v, %v, want why it was approved", id, j.Steps, err)
		}
	}
}
