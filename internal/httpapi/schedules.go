package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/view"
)

// maxSchedule is how large the body of a schedule may be, in bytes.
const maxSchedule = limits.MaxScheduleInputBytes + maxOverhead

// ScheduleRemoval is the body that removes one.
type ScheduleRemoval struct {
	Rev int64 `json:"rev,omitempty"`
}

// ScheduleRun is the body that makes a job of a schedule now. The same Request twice is one job.
type ScheduleRun struct {
	Request string `json:"request,omitempty"`
}

// ScheduleAsking is the body of a request that says no more.
type ScheduleAsking struct{}

// ScheduleList is all schedules.
type ScheduleList struct {
	Schedules []api.Scheduled `json:"schedules"`
}

// Fires are the next fires of a schedule.
type Fires struct {
	Fires []time.Time `json:"fires"`
}

// ScheduleJob is the job that a run by hand has made.
type ScheduleJob struct {
	Job string `json:"job"`
}

// Removed says that a schedule was removed.
type Removed struct{}

// scheduleRoutes are those of the schedules.
func scheduleRoutes() []route {
	s, none := api.Scheduled{}, Problem{}
	read := func(body any, more ...int) map[int]any {
		all := map[int]any{http.StatusOK: body, http.StatusNotFound: none, http.StatusInternalServerError: none}
		for _, status := range more {
			all[status] = none
		}
		return everywhere(all)
	}
	asked := func(body any, more ...int) map[int]any {
		return read(body, append(more, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)...)
	}
	return []route{
		{
			method: "POST", path: "/api/schedules", name: "createSchedule", door: Operate, handle: (*handlers).createSchedule, body: makegood.Schedule{}, limit: maxSchedule,
			summary: "Create a schedule. It is stored before this is answered. The same again is the same schedule (200); another of its name is refused (409).",
			answers: posted(map[int]any{http.StatusCreated: s, http.StatusOK: s}),
		},
		{
			method: "GET", path: "/api/schedules", name: "listSchedules", door: Read, handle: (*handlers).listSchedules,
			summary: "All schedules, by their names.",
			answers: everywhere(map[int]any{http.StatusOK: ScheduleList{}}),
		},
		{
			method: "GET", path: "/api/schedules/{id}", name: "getSchedule", door: Read, handle: (*handlers).getSchedule,
			summary: "Read a schedule.",
			answers: read(s),
		},
		{
			method: "GET", path: "/api/schedules/{id}/next", name: "nextFires", door: Read, handle: (*handlers).nextFires,
			summary:    "The next fires of a schedule, as if it were not paused.",
			parameters: []parameter{{name: "count", says: fmt.Sprintf("how many, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true}},
			answers:    read(Fires{}, http.StatusBadRequest),
		},
		{
			method: "POST", path: "/api/schedules/{id}", name: "changeSchedule", door: Operate, handle: (*handlers).changeSchedule, body: makegood.Schedule{}, limit: maxSchedule,
			parameters: []parameter{{name: "rev", says: "the rev of the schedule as it was seen; without it, whatever it is"}},
			summary:    "Change a schedule, if it has the rev that was seen. Its next fire is the next one from now on; it stays paused if it was. One that comes from a workflow file is changed there (409).",
			answers:    asked(s, http.StatusConflict),
		},
		{
			method: "POST", path: "/api/schedules/{id}/pause", name: "pauseSchedule", door: Operate, handle: (*handlers).pauseSchedule, body: ScheduleAsking{},
			summary: "Keep a schedule from firing until it is resumed.",
			answers: asked(s),
		},
		{
			method: "POST", path: "/api/schedules/{id}/resume", name: "resumeSchedule", door: Operate, handle: (*handlers).resumeSchedule, body: ScheduleAsking{},
			summary: "Let a schedule fire again. What came due while it was paused is not made up for.",
			answers: asked(s),
		},
		{
			method: "POST", path: "/api/schedules/{id}/run", name: "runSchedule", door: Operate, handle: (*handlers).runSchedule, body: ScheduleRun{},
			summary: "Make a job of a schedule now, beside its fires.",
			answers: asked(ScheduleJob{}),
		},
		{
			method: "POST", path: "/api/schedules/{id}/remove", name: "removeSchedule", door: Operate, handle: (*handlers).removeSchedule, body: ScheduleRemoval{},
			summary: "Remove a schedule, if it has the rev that was seen. Jobs that it made go on; one that was just firing may fire once more.",
			answers: asked(Removed{}, http.StatusConflict),
		},
	}
}

// scheduleName returns the name in the path. One that no schedule can have is that of none, and reaches no store.
func scheduleName(r *http.Request) (string, error) {
	name := r.PathValue("id")
	if limits.ScheduleName.Check(name) != nil {
		return "", noSchedule(name)
	}
	return name, nil
}

func noSchedule(name string) *problem {
	p := newProblem(http.StatusNotFound, "there is no schedule %.80q", name)
	p.body.Schedule = name
	return p
}

// scheduleProblem words the errors of schedules.
func scheduleProblem(name string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noSchedule(name)
	case errors.Is(err, store.ErrConflict), errors.Is(err, timetable.ErrExists):
		reason := err.Error()
		if errors.Is(err, store.ErrConflict) {
			reason = "it was changed meanwhile: look at it again"
		}
		p := newProblem(http.StatusConflict, "schedule %s: %s", name, reason)
		p.body.Schedule, p.body.Reason = name, reason
		return p
	case errors.Is(err, store.ErrDamaged):
		p := newProblem(http.StatusInternalServerError, "schedule %s is stored, but cannot be read; the log of its store says why", name)
		p.body.Schedule = name
		return p
	case errors.Is(err, store.ErrNewer):
		p := newProblem(http.StatusServiceUnavailable, "schedule %s was written by a newer release of Makegood; ask again when the deployment is done", name)
		p.retryAfter = retryAfterDeployment
		return p
	default:
		return err
	}
}

// shown answers with a schedule as it is stored after what was asked.
func (a *handlers) shown(r *http.Request, what, name string, s store.Scheduled, err error) (answer, error) {
	if err != nil {
		return answer{}, scheduleProblem(name, err)
	}
	a.Logger.InfoContext(r.Context(), "schedule", "request", what, "schedule", name, "by", a.Caller(r))
	return ok(view.Schedule(s))
}

func (a *handlers) createSchedule(r *http.Request) (answer, error) {
	var s makegood.Schedule
	if err := decode(r, &s); err != nil {
		return answer{}, err
	}
	stored, created, err := a.Schedules.Create(r.Context(), s, a.Caller(r))
	said, err := a.shown(r, "create", s.Name, stored, err)
	if created {
		said.status, said.location = http.StatusCreated, "/api/schedules/"+url.PathEscape(s.Name)
	}
	return said, err
}

func (a *handlers) listSchedules(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	list, err := a.Schedules.List(r.Context())
	if err != nil {
		return answer{}, err
	}
	return ok(ScheduleList{Schedules: view.Schedules(list)})
}

func (a *handlers) getSchedule(r *http.Request) (answer, error) {
	if _, err := query(r); err != nil {
		return answer{}, err
	}
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	s, err := a.Schedules.Get(r.Context(), name)
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return answer{}, scheduleProblem(name, err)
	}
	return ok(view.Schedule(s))
}

func (a *handlers) nextFires(r *http.Request) (answer, error) {
	values, err := query(r, "count")
	if err != nil {
		return answer{}, err
	}
	count, err := strconv.Atoi(cmp.Or(values.Get("count"), strconv.Itoa(DefaultLimit)))
	if err != nil || count < 1 || count > MaxLimit {
		return answer{}, bad("count is %.40q: want 1 to %d", values.Get("count"), MaxLimit)
	}
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	s, err := a.Schedules.Get(r.Context(), name)
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return answer{}, scheduleProblem(name, err)
	}
	fires, err := a.Schedules.Next(s.Schedule, count)
	if err != nil {
		return answer{}, err
	}
	return ok(Fires{Fires: append([]time.Time{}, fires...)})
}

func (a *handlers) changeSchedule(r *http.Request) (answer, error) {
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	values, err := query(r, "rev")
	if err != nil {
		return answer{}, err
	}
	rev, err := strconv.ParseInt(cmp.Or(values.Get("rev"), "0"), 10, 64)
	if err != nil || rev < 0 {
		return answer{}, bad("rev is %.40q: want a number", values.Get("rev"))
	}
	var s makegood.Schedule
	if err := decode(r, &s); err != nil {
		return answer{}, err
	}
	if s.Name = cmp.Or(s.Name, name); s.Name != name {
		return answer{}, bad("the schedule %.80q cannot become %.80q: create that, and remove this", name, s.Name)
	}
	stored, err := a.Schedules.Change(r.Context(), s, rev, a.Caller(r))
	return a.shown(r, "change", name, stored, err)
}

func (a *handlers) pauseSchedule(r *http.Request) (answer, error) {
	return a.askSchedule(r, "pause", a.Schedules.Pause)
}

func (a *handlers) resumeSchedule(r *http.Request) (answer, error) {
	return a.askSchedule(r, "resume", a.Schedules.Resume)
}

// askSchedule asks something of a schedule that needs no more than its name.
func (a *handlers) askSchedule(r *http.Request, what string, do func(ctx context.Context, name, by string) (store.Scheduled, error)) (answer, error) {
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	if err := decode(r, &ScheduleAsking{}); err != nil {
		return answer{}, err
	}
	s, err := do(r.Context(), name, a.Caller(r))
	return a.shown(r, what, name, s, err)
}

func (a *handlers) runSchedule(r *http.Request) (answer, error) {
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	var run ScheduleRun
	if err := decode(r, &run); err != nil {
		return answer{}, err
	}
	if run.Request == "" {
		run.Request = protocol.NewJobID(a.Now())
	}
	const most = 40 // so that the id of the job is not too long
	if !namePattern.MatchString(run.Request) || len(run.Request) > most {
		return answer{}, bad("request: want %s, and at most %d characters", namePattern, most)
	}
	id, err := a.Schedules.Run(r.Context(), name, run.Request)
	if err != nil {
		return answer{}, scheduleProblem(name, err)
	}
	a.Logger.InfoContext(r.Context(), "schedule", "request", "run", "schedule", name, "job", id, "by", a.Caller(r))
	return ok(ScheduleJob{Job: id})
}

func (a *handlers) removeSchedule(r *http.Request) (answer, error) {
	name, err := scheduleName(r)
	if err != nil {
		return answer{}, err
	}
	var removal ScheduleRemoval
	if err := decode(r, &removal); err != nil {
		return answer{}, err
	}
	if err := a.Schedules.Remove(r.Context(), name, removal.Rev); err != nil {
		return answer{}, scheduleProblem(name, err)
	}
	a.Logger.InfoContext(r.Context(), "schedule", "request", "remove", "schedule", name, "by", a.Caller(r))
	return ok(Removed{})
}
