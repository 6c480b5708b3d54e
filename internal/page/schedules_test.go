package page_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// A schedule is made on the page, run, paused, resumed, changed and removed; what cannot be is refused in the words of the API.
func TestAScheduleIsLookedAfterOnThePage(t *testing.T) {
	w := newWorld(t)
	w.get("schedules").wants(t, "There is none.", "New schedule")
	w.get("schedules/new").wants(t, "<option>trip</option>", `name="cron"`)
	form := url.Values{"name": {"nightly"}, "workflow": {"trip"}, "cron": {"30 2 * * *"}, "zone": {"UTC"}, "input": {`{"from": "${ .time }"}`}, "missed": {"all"}, "atMost": {"3"}, "overlap": {"skip"}}
	w.post("schedules", form).wants(t, `id="schedule-nightly"`, "30 2 * * *", "UTC", "all, at most 3", "overlap: skip", "1 fire in the next 24 hours", "none yet")
	ran := w.post("schedules/nightly/run", url.Values{})
	if !strings.Contains(ran.at.Path, "/jobs/nightly:run:") {
		t.Errorf("run now led to %s, want the job", ran.at)
	}
	w.post("schedules/nightly/pause", url.Values{}).wants(t, "none, it is paused")
	w.post("schedules/nightly/resume", url.Values{}).wants(t, "next: <b>nightly</b>")
	edit := w.get("schedules/nightly/edit")
	edit.wants(t, "30 2 * * *", "Remove…", "readonly")
	form.Set("rev", edit.form().Get("rev"))
	form.Set("cron", "0 4 * * *")
	w.post("schedules/nightly", form).wants(t, "0 4 * * *")
	if again := w.post("schedules/nightly", form); again.status != http.StatusConflict {
		t.Errorf("changed what was changed meanwhile: got %d, want 409", again.status)
	}
	for what, change := range map[string][2]string{"cron": {"cron", "61 * * * *"}, "input": {"input", "{"}, "every": {"every", "often"}, "at most": {"atMost", "x"}} {
		bad := url.Values{}
		for name, values := range form {
			bad[name] = values
		}
		bad.Set("name", "other")
		bad.Set(change[0], change[1])
		if got := w.post("schedules", bad); got.status != http.StatusBadRequest {
			t.Errorf("a wrong %s: got %d, want 400", what, got.status)
		}
	}
	w.post("schedules/nightly/remove", w.get("schedules/nightly/remove").form()).wants(t, "There is none.")
	if got := w.get("schedules/nightly/edit"); got.status != http.StatusNotFound {
		t.Errorf("a schedule that was removed: got %d, want 404", got.status)
	}
}

// A rate is shown as such, with as many of its fires as are asked for.
func TestARateIsDrawn(t *testing.T) {
	w := newWorld(t)
	every, err := makegood.ParseDuration("10s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateSchedule(t.Context(), makegood.Schedule{Name: "often", Workflow: "trip", Every: every, Input: []byte(`{"fail":"charge"}`)}); err != nil {
		t.Fatal(err)
	}
	w.get("schedules").wants(t, "every 10s", "200 fires in the next 24 hours")
}
