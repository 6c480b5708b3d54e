package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// ErrNoSchedule: there is no such schedule.
var ErrNoSchedule = errors.New("there is no such schedule")

// Scheduled is a schedule as it is kept: what it says, and where it stands.
type Scheduled struct {
	makegood.Schedule
	// Rev counts its writes, fires too.
	Rev int64 `json:"rev"`
	// From is the workflow whose file says it; empty: a person made it.
	From string `json:"from"`
	// PausedAt is since when it is paused; nil: it is not.
	PausedAt  *time.Time `json:"pausedAt"`
	CreatedAt time.Time  `json:"createdAt"`
	// NextFire is the fire that comes next; nil: none does.
	NextFire *time.Time `json:"nextFire"`
	// LastFire is the last fire that made a job, and LastJob that job.
	LastFire *time.Time `json:"lastFire"`
	LastJob  string     `json:"lastJob"`
	// Skipped counts the fires that were left out, by what it says of missed ones and of overlaps.
	Skipped int64 `json:"skipped"`
	// Problem is why the last fire made no job; empty: it did.
	Problem string `json:"problem"`
	// ChangedBy is who made, changed, paused or resumed it last, where that is known.
	ChangedBy string `json:"changedBy"`
	// Existed: the same schedule was there already. Only CreateSchedule sets it.
	Existed bool `json:"-"`
}

// Schedules is how a program works with schedules, wherever they are, as Jobs is for jobs. After ErrNoSchedule,
// *RefusedError and *InvalidError nothing has changed. After *UnreachableError, or another, it is unknown what became of the
// request: every one may be made again without harm.
type Schedules interface {
	// CreateSchedule stores a new schedule, whose first fire is the next one from now on. The same again is the same schedule,
	// and Existed is set; another of its name is a *RefusedError.
	CreateSchedule(ctx context.Context, s makegood.Schedule) (Scheduled, error)
	// ChangeSchedule puts a schedule in the place of the one of its name, if rev is its Rev, or 0. It stays paused if it was.
	// A *RefusedError says that it was changed meanwhile, or comes from a workflow file.
	ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (Scheduled, error)
	GetSchedule(ctx context.Context, name string) (Scheduled, error)
	// ListSchedules returns all schedules by their names.
	ListSchedules(ctx context.Context) ([]Scheduled, error)
	// NextFires returns the next count fires of a schedule, as if it were not paused.
	NextFires(ctx context.Context, name string, count int) ([]time.Time, error)
	// PauseSchedule keeps a schedule from firing until ResumeSchedule. What comes due meanwhile is not made up for.
	PauseSchedule(ctx context.Context, name string) (Scheduled, error)
	ResumeSchedule(ctx context.Context, name string) (Scheduled, error)
	// RunSchedule makes a job of a schedule now, beside its fires, and returns its id.
	RunSchedule(ctx context.Context, name string) (job string, err error)
	// RemoveSchedule removes a schedule, if rev is its Rev, or 0. One that was just firing may fire once more.
	RemoveSchedule(ctx context.Context, name string, rev int64) error
}

var _ Schedules = (*Client)(nil)

// CreateSchedule is what Schedules says.
func (c *Client) CreateSchedule(ctx context.Context, s makegood.Schedule) (stored Scheduled, err error) {
	status, err := c.call(ctx, http.MethodPost, "/api/schedules", nil, s, &stored)
	if err != nil {
		return stored, fmt.Errorf("create schedule %s: %w", s.Name, err)
	}
	stored.Existed = status != http.StatusCreated
	return stored, nil
}

// ChangeSchedule is what Schedules says.
func (c *Client) ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (stored Scheduled, err error) {
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
func (c *Client) GetSchedule(ctx context.Context, name string) (s Scheduled, err error) {
	if _, err := c.call(ctx, http.MethodGet, scheduleAt(name, ""), nil, nil, &s); err != nil {
		return s, fmt.Errorf("get schedule %s: %w", name, err)
	}
	return s, nil
}

// ListSchedules returns all schedules by their names.
func (c *Client) ListSchedules(ctx context.Context) ([]Scheduled, error) {
	var list struct {
		Schedules []Scheduled `json:"schedules"`
	}
	if _, err := c.call(ctx, http.MethodGet, "/api/schedules", nil, nil, &list); err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return list.Schedules, nil
}

// NextFires is what Schedules says.
func (c *Client) NextFires(ctx context.Context, name string, count int) ([]time.Time, error) {
	var next struct {
		Fires []time.Time `json:"fires"`
	}
	query := url.Values{"count": {strconv.Itoa(count)}}
	if _, err := c.call(ctx, http.MethodGet, scheduleAt(name, "/next"), query, nil, &next); err != nil {
		return nil, fmt.Errorf("next fires of schedule %s: %w", name, err)
	}
	return next.Fires, nil
}

// PauseSchedule is what Schedules says.
func (c *Client) PauseSchedule(ctx context.Context, name string) (Scheduled, error) {
	return c.askSchedule(ctx, name, "pause")
}

// ResumeSchedule is what Schedules says.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (Scheduled, error) {
	return c.askSchedule(ctx, name, "resume")
}

func (c *Client) askSchedule(ctx context.Context, name, what string) (s Scheduled, err error) {
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(name, "/"+what), nil, struct{}{}, &s); err != nil {
		return s, fmt.Errorf("%s schedule %s: %w", what, name, err)
	}
	return s, nil
}

// RunSchedule is what Schedules says. All tries of a call are one job.
func (c *Client) RunSchedule(ctx context.Context, name string) (job string, err error) {
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

// RemoveSchedule is what Schedules says. After a try whose answer was lost it may find that there is none any more.
func (c *Client) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	body := struct {
		Rev int64 `json:"rev,omitempty"`
	}{rev}
	if _, err := c.call(ctx, http.MethodPost, scheduleAt(name, "/remove"), nil, body, &struct{}{}); err != nil {
		return fmt.Errorf("remove schedule %s: %w", name, err)
	}
	return nil
}

// scheduleAt is where a schedule is, or what can be asked of it.
func scheduleAt(name, what string) string { return "/api/schedules/" + url.PathEscape(name) + what }
