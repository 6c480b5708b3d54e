package httpapi_test

import (
	"context"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// brokenSchedules is a timetable whose store fails.
func brokenSchedules(err error) *timetable.Timetable {
	return timetable.New(timetable.Config{
		Schedules: scheduleless{err}, Jobs: memstore.New(),
		Submit: func(context.Context, string, scheduler.Submission) (job.Job, bool, error) {
			return job.Job{}, false, err
		},
	})
}

// scheduleless keeps no schedule: every call of it fails.
type scheduleless struct{ err error }

func (s scheduleless) PutSchedule(context.Context, store.Scheduled) error { return s.err }

func (s scheduleless) Schedule(context.Context, string) (store.Scheduled, error) {
	return store.Scheduled{}, s.err
}

func (s scheduleless) RemoveSchedule(context.Context, string, int64) error { return s.err }

func (s scheduleless) ListSchedules(context.Context) ([]store.Scheduled, error) { return nil, s.err }

// scheduleConversations are those about schedules, in their order.
func scheduleConversations() []conversation {
	const all, one = "/api/schedules", "/api/schedules/{id}"
	const daily, weekly = `{"name":"s","workflow":"order","cron":"@daily"}`, `{"name":"s","workflow":"order","cron":"@weekly"}`
	large := `{"name":"` + strings.Repeat("s", 64<<10) + `"}`
	talks := []conversation{
		{"POST", all, all, daily, "", 201},
		{"POST", all, all, daily, "", 200},
		{"POST", all, all, weekly, "", 409},
		{"POST", all, all, `{"name":"s","workflow":"order","cron":"@noon"}`, "", 400},
		{"POST", all, all, daily, "Content-Type: text/plain", 415},
		{"POST", all, all, daily, "Sec-Fetch-Site: cross-site", 403},
		{"POST", all, all, large, "", 413},
		{"GET", all, all, "", "", 200},
		{"GET", one, all + "/s", "", "", 200},
		{"GET", one, all + "/nobody", "", "", 404},
		{"GET", one, all + "/No_Name", "", "", 404},
		{"GET", one + "/next", all + "/s/next?count=3", "", "", 200},
		{"GET", one + "/next", all + "/s/next?count=0", "", "", 400},
		{"GET", one + "/next", all + "/nobody/next", "", "", 404},
		{"POST", one, all + "/s", weekly, "", 200},
		{"POST", one, all + "/s?rev=99", daily, "", 409},
		{"POST", one, all + "/s?rev=x", daily, "", 400},
		{"POST", one, all + "/t", daily, "", 400},
		{"POST", one, all + "/nobody", `{"workflow":"order","cron":"@daily"}`, "", 404},
		{"POST", one, all + "/s", daily, "Content-Type: text/plain", 415},
		{"POST", one, all + "/s", daily, "Sec-Fetch-Site: cross-site", 403},
		{"POST", one, all + "/s", large, "", 413},
		{"POST", one + "/run", all + "/s/run", `{"request":"not/one"}`, "", 400},
		{"POST", one + "/remove", all + "/s/remove", `{"rev":99}`, "", 409},
	}
	for _, word := range []string{"pause", "resume", "run", "remove"} {
		route, at := one+"/"+word, all+"/s/"+word
		talks = append(talks,
			conversation{"POST", route, all + "/nobody/" + word, `{}`, "", 404},
			conversation{"POST", route, at, `{"why":1}`, "", 400},
			conversation{"POST", route, at, `{}`, "Content-Type: text/plain", 415},
			conversation{"POST", route, at, `{}`, "Sec-Fetch-Site: cross-site", 403},
			conversation{"POST", route, at, strings.Repeat(" ", 64<<10), "", 413},
			conversation{"POST", route, at, `{}`, "", 200},
		)
	}
	return talks
}
