package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxDrawn is how many schedules have their day drawn and their last job read, those that fire next; maxFires is how
	// many fires of each are drawn.
	maxDrawn = 50
	maxFires = 200
	// aDay is the drawn span of a schedule.
	aDay = 24 * time.Hour
)

func schedulesViews() []view {
	return []view{
		{pattern: "GET /schedules", nav: "Schedules", title: "Schedules", template: "schedules.html", load: (*Page).schedules, regions: []string{"schedules-lead", "schedules"}},
		{pattern: "GET /schedules/new", nav: "Schedules", title: "New schedule", template: "schedule.html", load: (*Page).newSchedule},
		{pattern: "GET /schedules/{name}/edit", nav: "Schedules", title: "Schedule", template: "schedule.html", load: (*Page).editSchedule},
		{pattern: "GET /schedules/{name}/remove", nav: "Schedules", title: "Remove", template: "unschedule.html", load: (*Page).askRemoval},
		{pattern: "POST /schedules", load: (*Page).createSchedule},
		{pattern: "POST /schedules/{name}", load: (*Page).changeSchedule},
		{pattern: "POST /schedules/{name}/run", load: (*Page).runSchedule},
		{pattern: "POST /schedules/{name}/pause", load: (*Page).pauseSchedule},
		{pattern: "POST /schedules/{name}/resume", load: (*Page).resumeSchedule},
		{pattern: "POST /schedules/{name}/remove", load: (*Page).removeSchedule},
	}
}

// schedulesData is all schedules, the one that fires next first.
type schedulesData struct {
	Schedules []scheduleRow
	// Next is the one that fires next; nil: none does. Wrong are those with a last job that waits for a person, or a last
	// fire that made no job.
	Next  *scheduleRow
	Wrong []scheduleRow
	Full  bool
}

// scheduleRow is a schedule in the list.
type scheduleRow struct {
	api.Scheduled
	// Fires are the next fires within a day, as percentages of it. Drawn: they were asked for.
	Fires []string
	Drawn bool
	// Job is the last job; nil: there is none, or it is not there any more.
	Job *makegood.Job
	Now time.Time
}

// When describes its times.
func (s scheduleRow) When() string {
	if s.Every != 0 {
		return "every " + s.Every.String()
	}
	return s.Cron
}

// Where is the clock that its times are on.
func (s scheduleRow) Where() string {
	if s.Every != 0 {
		return ""
	}
	return cmp.Or(s.Zone, "UTC")
}

// Mark is the state of its last job.
func (s scheduleRow) Mark() mark { return markOf(s.Job.ProcessState, s.Job.Paused, false) }

// Took is how long the last job took, or takes by now.
func (s scheduleRow) Took() time.Duration {
	end := s.Now
	if s.Job.FinishedAt != nil {
		end = *s.Job.FinishedAt
	}
	return end.Sub(s.Job.CreatedAt)
}

// wrong reports whether it needs a person.
func (s scheduleRow) wrong() bool {
	return s.Problem != "" || s.Job != nil && s.Job.ProcessState == makegood.JobError
}

// SkippedFires is how many fires were left out.
func (s scheduleRow) SkippedFires() int { return int(s.Skipped) }

// MissedSays describes the treatment of missed fires.
func (s scheduleRow) MissedSays() string {
	if s.Missed == makegood.MissedAll {
		return fmt.Sprintf("all, at most %d", s.AtMost)
	}
	return string(s.Missed)
}

// schedules loads all schedules.
func (p *Page) schedules(r *http.Request) (any, error) {
	all, err := p.Jobs.ListSchedules(r.Context())
	if err != nil {
		return nil, err
	}
	now := p.Now().UTC()
	d := schedulesData{Full: len(all) >= limits.MaxSchedules}
	for _, s := range all {
		d.Schedules = append(d.Schedules, scheduleRow{Scheduled: s, Now: now})
	}
	slices.SortStableFunc(d.Schedules, func(a, b scheduleRow) int { return compareFires(a.NextFire, b.NextFire) })
	someAtOnce(min(len(d.Schedules), maxDrawn), func(i int) { p.draw(r.Context(), &d.Schedules[i]) })
	if len(d.Schedules) > 0 && d.Schedules[0].NextFire != nil {
		d.Next = &d.Schedules[0]
	}
	for _, s := range d.Schedules {
		if s.wrong() {
			d.Wrong = append(d.Wrong, s)
		}
	}
	return d, context.Cause(r.Context())
}

// compareFires puts the earlier first, and schedules that do not fire last.
func compareFires(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

// draw asks for the next fires and the last job of a schedule. It leaves out values that cannot be read: the row shows
// the others all the same.
func (p *Page) draw(ctx context.Context, row *scheduleRow) {
	if row.PausedAt == nil {
		fires, err := p.Jobs.NextFires(ctx, row.Name, maxFires)
		row.Drawn = err == nil
		for _, at := range fires {
			if in := at.Sub(row.Now); in >= 0 && in < aDay {
				row.Fires = append(row.Fires, strconv.FormatFloat(100*float64(in)/float64(aDay), 'f', 2, 64))
			}
		}
	}
	if row.LastJob == "" {
		return
	}
	if job, err := p.Jobs.Look(ctx, row.LastJob); err == nil {
		row.Job = &job
	}
}

// scheduleForm is a schedule to be made or changed.
type scheduleForm struct {
	makegood.Schedule
	// Rev is the revision of the schedule that is changed; 0: it is new. From is the workflow with the schedule in its
	// file.
	Rev       int64
	From      string
	Text      string
	Workflows []string
	Missing   []makegood.Missed
	Overlaps  []makegood.Overlap
}

// Title names the window.
func (f scheduleForm) Title() string { return cmp.Or(f.Name, "New schedule") }

func (p *Page) formOf(r *http.Request, s makegood.Schedule) (scheduleForm, error) {
	names, err := p.workflowNames(r.Context())
	return scheduleForm{
		Schedule: s, Text: string(s.Input), Workflows: names,
		Missing:  []makegood.Missed{makegood.MissedOne, makegood.MissedSkip, makegood.MissedAll},
		Overlaps: []makegood.Overlap{makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue},
	}, err
}

func (p *Page) newSchedule(r *http.Request) (any, error) {
	return p.formOf(r, domain.ScheduleDefaults(makegood.Schedule{Workflow: r.FormValue("workflow")}))
}

func (p *Page) editSchedule(r *http.Request) (any, error) {
	s, err := p.Jobs.GetSchedule(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	form, err := p.formOf(r, s.Schedule)
	form.Rev, form.From = s.Rev, s.From
	return form, err
}

// readSchedule reads a schedule from a form.
func readSchedule(r *http.Request) (s makegood.Schedule, rev int64, err error) {
	s = makegood.Schedule{
		Name: r.PostFormValue("name"), Workflow: r.PostFormValue("workflow"), Cron: r.PostFormValue("cron"), Zone: r.PostFormValue("zone"),
		Missed: makegood.Missed(r.PostFormValue("missed")), Overlap: makegood.Overlap(r.PostFormValue("overlap")), Priority: makegood.Priority(r.PostFormValue("priority")),
	}
	if text := r.PostFormValue("input"); text != "" {
		s.Input = json.RawMessage(text)
		if !json.Valid(s.Input) {
			return s, 0, &api.InvalidError{Message: "The input is no JSON."}
		}
	}
	if text := r.PostFormValue("every"); text != "" {
		if s.Every, err = makegood.ParseDuration(text); err != nil {
			return s, 0, &api.InvalidError{Message: fmt.Sprintf("every: %v", err)}
		}
	}
	if s.Missed == makegood.MissedAll {
		if s.AtMost, err = strconv.Atoi(cmp.Or(r.PostFormValue("atMost"), "0")); err != nil {
			return s, 0, &api.InvalidError{Message: "at most: want a number"}
		}
	}
	rev, err = readRev(r)
	return s, rev, err
}

func readRev(r *http.Request) (int64, error) {
	rev, err := strconv.ParseInt(cmp.Or(r.PostFormValue("rev"), "0"), 10, 64)
	if err != nil {
		return 0, &api.InvalidError{Message: "rev: want a number"}
	}
	return rev, nil
}

func (p *Page) createSchedule(r *http.Request) (any, error) {
	s, _, err := readSchedule(r)
	if err != nil {
		return nil, err
	}
	_, err = p.Jobs.CreateSchedule(r.Context(), s)
	return goTo("schedules"), err
}

func (p *Page) changeSchedule(r *http.Request) (any, error) {
	s, rev, err := readSchedule(r)
	if err != nil {
		return nil, err
	}
	s.Name = r.PathValue("name")
	_, err = p.Jobs.ChangeSchedule(r.Context(), s, rev)
	return goTo("schedules"), err
}

// runSchedule makes a job of the schedule now, and shows the job.
func (p *Page) runSchedule(r *http.Request) (any, error) {
	job, err := p.Jobs.RunSchedule(r.Context(), r.PathValue("name"))
	return goTo("jobs/" + job), err
}

func (p *Page) pauseSchedule(r *http.Request) (any, error) {
	_, err := p.Jobs.PauseSchedule(r.Context(), r.PathValue("name"))
	return goTo("schedules"), err
}

func (p *Page) resumeSchedule(r *http.Request) (any, error) {
	_, err := p.Jobs.ResumeSchedule(r.Context(), r.PathValue("name"))
	return goTo("schedules"), err
}

// removal is a schedule that is to be removed.
type removal struct{ api.Scheduled }

// Title names the window.
func (d removal) Title() string { return "Remove " + d.Name }

func (p *Page) askRemoval(r *http.Request) (any, error) {
	s, err := p.Jobs.GetSchedule(r.Context(), r.PathValue("name"))
	return removal{s}, err
}

func (p *Page) removeSchedule(r *http.Request) (any, error) {
	rev, err := readRev(r)
	if err != nil {
		return nil, err
	}
	return goTo("schedules"), p.Jobs.RemoveSchedule(r.Context(), r.PathValue("name"), rev)
}
