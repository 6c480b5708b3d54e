package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
func (c *remote) GetSchedule(ctx context.Context, name string) (s api.Scheduled, err error) {
	if _, err := c.call(ctx, http.MethodGet, scheduleAt(name, ""), nil, nil, &s); err != nil {
		return s, fmt.Errorf("get schedule %s: %w", name, err)
	}
	return s, nil
}

// ListSchedules returns all schedules by their names.
func (c *remote) ListSchedules(ctx context.Context) ([]api.Scheduled, error) {
	var list struct {
		Schedules []api.Scheduled `json:"schedules"`
	}
	if _, err := c.call(ctx, http.MethodGet, "/api/schedules", nil, nil, &list); err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return list.Schedules, nil
}

// NextFires implements api.Schedules.
func (c *remote) NextFires(ctx context.Context, name string, count int) ([]time.Time, error) {
	var next struct {
		Fires []time.Time `json:"fires"`
	}
	query := url.Values{"count": {strconv.Itoa(count)}}
	if _, err := c.call(ctx, http.MethodGet, scheduleAt(name, "/next"), query, nil, &next); err != nil {
		return nil, fmt.Errorf("next fires of schedule %s: %w", name, err)
	}
	return next.Fires, nil
}

// PauseSchedule implements api.Schedules.
func (c *remote) PauseSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return c.askSchedule(ctx, name, "pause")
}

// ResumeSchedule implements api.Schedules.
func (c *remote) ResumeSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return c.askSchedule(ctx, name, "resume")
}

func (c *remote) askSchedule(ctx context.Context, name, what string) (s api.Scheduled, err error) {
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(name, "/"+what), nil, struct{}{}, &s); err != nil {
		return s, fmt.Errorf("%s schedule %s: %w", what, name, err)
	}
	return s, nil
}

// RunSchedule implements api.Schedules. All tries of a call are one job.
func (c *remote) RunSchedule(ctx context.Context, name string) (job string, err error) {
	body := struct {
		Request string `json:"request"`
	}{strings.ToLower(rand.Text())}
	var made struct {
		Job string `json:"job"`
	}
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(name, "/run"), nil, body, &made); err != nil {
		return "", fmt.Errorf("run schedule %s: %w", name, err)
	}
	return made.Job, nil
}

// RemoveSchedule implements api.Schedules. After a try with a lost answer it may find that the schedule is gone.
func (c *remote) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	body := struct {
		Rev int64 `json:"rev,omitempty"`
	}{rev}
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(name, "/remove"), nil, body, &struct{}{}); err != nil {
		return fmt.Errorf("remove schedule %s: %w", name, err)
	}
	return nil
}

// scheduleAt returns the path of a schedule, or of a request for it.
func scheduleAt(name, what string) string { return "/api/schedules/" + url.PathEscape(name) + what }
