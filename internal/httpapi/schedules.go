package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
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

// ScheduleAsking is the body of a request about a schedule: an empty object.
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

// scheduleRoutes are the routes of the schedules.
func scheduleRoutes() []route {
	s := api.Scheduled{}
	return []route{
		{
			method: "POST", path: "/api/schedules", name: "createSchedule", door: Operate, handle: taking((*handlers).createSchedule), body: makegood.Schedule{}, limit: maxSchedule,
			summary: "Create a schedule. It is stored before this is answered. The same again is the same schedule (200); another of its name is refused (409).",
			answers: posted(map[int]any{http.StatusCreated: s, http.StatusOK: s}),
		},
		{
			method: "GET", path: "/api/schedules", name: "listSchedules", door: Read, handle: allOf((*control.Service).ListSchedules, func(all []api.Scheduled) ScheduleList { return ScheduleList{all} }),
			summary: "All schedules, by their names.",
			answers: everywhere(map[int]any{http.StatusOK: ScheduleList{}}),
		},
		{
			method: "GET", path: "/api/schedules/{id}", name: "getSchedule", door: Read, handle: bare(of("id", (*control.Service).GetSchedule)),
			summary: "Read a schedule.",
			answers: refusing(map[int]any{http.StatusOK: s}, http.StatusNotFound, http.StatusInternalServerError),
		},
		{
			method: "GET", path: "/api/schedules/{id}/next", name: "nextFires", door: Read, handle: (*handlers).nextFires,
			summary:    "The next fires of a schedule, as if it were not paused.",
			parameters: []parameter{{name: "count", says: fmt.Sprintf("how many, 1 to %d; default %d", MaxLimit, DefaultLimit), number: true}},
			answers:    refusing(map[int]any{http.StatusOK: Fires{}}, http.StatusBadRequest, http.StatusNotFound, http.StatusInternalServerError),
		},
		{
			method: "POST", path: "/api/schedules/{id}", name: "changeSchedule", door: Operate, handle: (*handlers).changeSchedule, body: makegood.Schedule{}, limit: maxSchedule,
			parameters: []parameter{{name: "rev", says: "the rev of the schedule as it was seen; without it, any rev"}},
			summary:    "Change a schedule, if it has the rev that was seen. Its next fire is the next one from now on; it stays paused if it was. One that comes from a workflow file is changed there (409).",
			answers:    askedOf(s, http.StatusConflict),
		},
		{
			method: "POST", path: "/api/schedules/{id}/pause", name: "pauseSchedule", door: Operate, handle: empty[ScheduleAsking](of("id", (*control.Service).PauseSchedule)), body: ScheduleAsking{},
			summary: "Keep a schedule from firing until it is resumed.",
			answers: askedOf(s),
		},
		{
			method: "POST", path: "/api/schedules/{id}/resume", name: "resumeSchedule", door: Operate, handle: empty[ScheduleAsking](of("id", (*control.Service).ResumeSchedule)), body: ScheduleAsking{},
			summary: "Let a schedule fire again. Fires that came due while it was paused are not made up for.",
			answers: askedOf(s),
		},
		{
			method: "POST", path: "/api/schedules/{id}/run", name: "runSchedule", door: Operate, handle: taking((*handlers).runSchedule), body: ScheduleRun{},
			summary: "Make a job of a schedule now, beside its fires.",
			answers: askedOf(ScheduleJob{}),
		},
		{
			method: "POST", path: "/api/schedules/{id}/remove", name: "removeSchedule", door: Operate, handle: taking((*handlers).removeSchedule), body: ScheduleRemoval{},
			summary: "Remove a schedule, if it has the rev that was seen. Jobs that it made go on; one that was just firing may fire once more.",
			answers: askedOf(Removed{}, http.StatusConflict),
		},
	}
}

func (a *handlers) createSchedule(r *http.Request, s makegood.Schedule) (answer, error) {
	stored, err := a.Jobs.CreateSchedule(r.Context(), s)
	said, err := orError(stored, err)
	if err == nil && !stored.Existed {
		said.status, said.location = http.StatusCreated, "/api/schedules/"+url.PathEscape(s.Name)
	}
	return said, err
}

func (a *handlers) nextFires(r *http.Request) (answer, error) {
	values, err := query(r, "count")
	if err != nil {
		return answer{}, err
	}
	count, err := limitOf(values, "count", MaxLimit)
	if err != nil {
		return answer{}, err
	}
	fires, err := a.Jobs.NextFires(r.Context(), r.PathValue("id"), count)
	return orError(Fires{Fires: append([]time.Time{}, fires...)}, err)
}

func (a *handlers) changeSchedule(r *http.Request) (answer, error) {
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
	name := r.PathValue("id")
	if s.Name = cmp.Or(s.Name, name); s.Name != name {
		return answer{}, bad("the schedule %.80q cannot become %.80q: create that, and remove this", name, s.Name)
	}
	return orError(a.Jobs.ChangeSchedule(r.Context(), s, rev))
}

func (a *handlers) runSchedule(r *http.Request, run ScheduleRun) (answer, error) {
	id, err := a.Jobs.RunScheduleOnce(r.Context(), r.PathValue("id"), cmp.Or(run.Request, protocol.NewJobID(a.Now())))
	return orError(ScheduleJob{Job: id}, err)
}

func (a *handlers) removeSchedule(r *http.Request, removal ScheduleRemoval) (answer, error) {
	return orError(Removed{}, a.Jobs.RemoveSchedule(r.Context(), r.PathValue("id"), removal.Rev))
}
