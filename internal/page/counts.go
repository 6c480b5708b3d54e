package page

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
)

const (
	// recountRest is the pause between counts, as a multiple of the time that counting took; Config.Interval at least.
	recountRest = 20
	// recountWait is how long a view waits for the first count; those after it are taken as they come.
	recountWait = 30 * time.Millisecond
)

// counts are how many jobs there are.
type counts struct {
	States []stateCount
	// All is how many there are; zero: not known.
	All int
	tally
}

// Counted reports whether anything was counted yet.
func (c counts) Counted() bool { return c.by != nil }

// stateCount is how many jobs are in a state.
type stateCount struct {
	Mark mark
	Jobs int
	// Known: Jobs is how many there are.
	Known bool
	// Current: the list shows these alone.
	Current bool
}

// tally holds the counts made in the background: in a file of a million jobs they take longer than a view may.
type tally struct {
	// Errors wait for a person, the first since Oldest; Late are late.
	Errors, Late int
	// Questions are the jobs that wait for an answer.
	Questions int
	Oldest    *time.Time
	// by are the jobs by state; ended: those that have ended are among them.
	by    map[makegood.ProcessState]int
	ended bool
}

// counts returns how many jobs there are, as they were counted last.
func (p *Page) counts(ctx context.Context, shown api.Filter) counts {
	c := counts{tally: p.recount.latest(ctx, p)}
	for _, state := range domain.ProcessStates() {
		known := c.by != nil && (c.ended || !state.Finished())
		c.States = append(c.States, stateCount{Mark: markOf(state, false, false), Jobs: c.by[state], Known: known, Current: shown.State == state})
		if c.ended {
			c.All += c.by[state]
		}
	}
	return c
}

// waiting returns how many jobs wait for a person. Where counting costs money, it is the last count that a view made.
func (p *Page) waiting(ctx context.Context) int {
	if p.Scans {
		return p.recount.known().persons()
	}
	return p.recount.latest(ctx, p).persons()
}

// persons is how many jobs wait for a person: they have stopped, or ask.
func (t tally) persons() int { return t.Errors + t.Questions }

// recount counts: one at a time, and no more often than is cheap.
type recount struct {
	mu   sync.Mutex
	last tally
	// next is when the next count may begin; underWay is closed when the running count ends; nil: none runs.
	next     time.Time
	underWay chan struct{}
}

// latest returns the last count, and starts a new one if it is due.
func (c *recount) latest(ctx context.Context, p *Page) tally {
	c.mu.Lock()
	first := c.next.IsZero()
	if c.underWay == nil && !time.Now().Before(c.next) {
		c.underWay = make(chan struct{})
		go c.count(context.WithoutCancel(ctx), p, c.underWay)
	}
	done := c.underWay
	c.mu.Unlock()
	if first && done != nil {
		select {
		case <-done:
		case <-time.After(recountWait):
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// known returns the last count, and starts none.
func (c *recount) known() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// count counts once. What cannot be counted stays as it was.
func (c *recount) count(ctx context.Context, p *Page, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	begun := time.Now()
	now, err := p.tallied(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.last = now
	} else {
		p.Logger.WarnContext(ctx, "page: jobs could not be counted", "error", err)
	}
	c.next, c.underWay = time.Now().Add(max(p.Interval, recountRest*time.Since(begun))), nil
	close(done)
}

// tallied counts with indexes alone, or by reading as far as one request goes.
func (p *Page) tallied(ctx context.Context) (t tally, err error) {
	count := func(f api.Filter) (api.Groups, error) {
		return p.Jobs.Count(ctx, f, []api.Facet{api.ByState}, "")
	}
	if err := p.byState(ctx, &t); err != nil {
		return t, err
	}
	asked, err := count(api.Filter{State: api.JobWaiting})
	if err != nil {
		return t, err
	}
	t.Questions = asked.Jobs
	late, err := count(api.Filter{Late: true})
	if err != nil {
		return t, err
	}
	t.Errors, t.Late = t.by[makegood.JobError], late.Jobs
	if t.Errors == 0 {
		return t, nil
	}
	errored, err := count(api.Filter{State: makegood.JobError})
	if len(errored.Groups) > 0 {
		t.Oldest = &errored.Groups[0].Since
	}
	return t, err
}

// byState counts the jobs by state; where the total is unknown, only those that have not ended.
func (p *Page) byState(ctx context.Context, t *tally) (err error) {
	t.by, err = p.Jobs.Totals(ctx)
	invalid, is := errors.AsType[*api.InvalidError](err)
	if !is || invalid.Status != http.StatusNotFound {
		t.ended = true
		return err
	}
	open, err := p.Jobs.Count(ctx, api.Filter{DueWithin: allDue}, []api.Facet{api.ByState}, "")
	t.by = map[makegood.ProcessState]int{}
	for _, g := range open.Groups {
		t.by[makegood.ProcessState(g.Values[0])] = g.Jobs
	}
	return err
}
