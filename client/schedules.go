package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

var _ api.Schedules = (*remote)(nil)

// CreateSchedule implements api.Schedules.
func (c *remote) CreateSchedule(ctx context.Context, s makegood.Schedule) (stored api.Scheduled, err error) {
	status, err := c.call(ctx, http.MethodPost, "/api/schedules", nil, s, &stored)
	if err != nil {
		return stored, fmt.Errorf("create schedule %s: %w", s.Name, err)
	}
	stored.Existed = status != http.StatusCreated
	return stored, nil
}

// ChangeSchedule implements api.Schedules.
func (c *remote) ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (stored api.Scheduled, err error) {
	query := url.Values{}
	if rev != 0 {
		query.Set("rev", strconv.FormatInt(rev, 10))
	}
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(s.Name, ""), query, s, &stored); err != nil {
		return stored, fmt.Errorf("change schedule %s: %w", s.Name, err)
	}
	return stored, nil
}

// GetSchedule reads a schedule.
func (c *remote) GetSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return read[api.Scheduled](ctx, c, "get schedule "+name, scheduleAt(name, ""), nil)
}

// ListSchedules returns all schedules by their names.
func (c *remote) ListSchedules(ctx context.Context) ([]api.Scheduled, error) {
	list, err := read[struct{ Schedules []api.Scheduled }](ctx, c, "list schedules", "/api/schedules", nil)
	return list.Schedules, err
}

// NextFires implements api.Schedules.
func (c *remote) NextFires(ctx context.Context, name string, count int) ([]time.Time, error) {
	query := url.Values{"count": {strconv.Itoa(count)}}
	next, err := read[struct{ Fires []time.Time }](ctx, c, "next fires of schedule "+name, scheduleAt(name, "/next"), query)
	return next.Fires, err
}

// PauseSchedule implements api.Schedules.
func (c *remote) PauseSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return c.askSchedule(ctx, name, "pause")
}

// ResumeSchedule implements api.Schedules.
func (c *remote) ResumeSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return c.askSchedule(ctx, name, "resume")
}

func (c *remote) askSchedule(ctx context.Context, name, what string) (api.Scheduled, error) {
	return post[api.Scheduled](ctx, c, what+" schedule "+name, scheduleAt(name, "/"+what), struct{}{})
}

// RunSchedule implements api.Schedules. All tries of a call are one job.
func (c *remote) RunSchedule(ctx context.Context, name string) (job string, err error) {
	made, err := post[struct{ Job string }](ctx, c, "run schedule "+name, scheduleAt(name, "/run"), map[string]string{"request": newRequest()})
	return made.Job, err
}

// RemoveSchedule implements api.Schedules. After a try with a lost answer it may find that the schedule is gone.
func (c *remote) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	body := struct {
		Rev int64 `json:"rev,omitempty"`
	}{rev}
	_, err := post[struct{}](ctx, c, "remove schedule "+name, scheduleAt(name, "/remove"), body)
	return err
}

// scheduleAt returns the path of a schedule, or of a request for it.
func scheduleAt(name, what string) string { return "/api/schedules/" + url.PathEscape(name) + what }
