// Package groupnotify alerts operators about many jobs at once: a hundred that stop for one reason are one alert, and
// the next alert counts those that follow. It stores no state that a job could lose: each job keeps its announcement
// until delivery, so it is brought again, also to another process and after a crash. Processes share only a short
// text for each cause; its loss causes a repeated alert.
package groupnotify

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
)

const (
	// Window is how long after an alert the next of the same cause is sent, at the earliest.
	Window = 5 * time.Minute
	// Gather is how long an alert waits for others of the same cause before it is sent.
	Gather = 500 * time.Millisecond
	// MaxGathered is how many announcements one process gathers for one alert. More are brought again.
	MaxGathered = 10_000
	// MaxCauses is how many causes are distinguished at once. Two that share a place are told of more often.
	MaxCauses = 1024
	// claimed is for how long a process that is sending an alert keeps others from it; it may die meanwhile.
	claimed = 20 * time.Second
	// fresh is how long after it was made an announcement is brought for the first time. Brought later, it was counted.
	fresh = limits.TellAgain * 3 / 4
	// skew is how far the clocks of two processes may be apart.
	skew = 5 * time.Second
	// conflicts is how often it is tried to count announcements while others do, too.
	conflicts = 5
)

// Places keeps a short text for each of several names, for all processes that alert. See store.Places.
type Places interface {
	Place(ctx context.Context, name string) (string, error)
	KeepPlace(ctx context.Context, name, seen, place string) error
}

// Config configures a Grouped. To and Places must be set.
type Config struct {
	// To are the alerters, all told at once; an alert has been sent when each has it.
	To []notify.Alerter
	// Places keeps the times of the alerts; NewPlaces, in a process that alerts alone.
	Places Places
	// Where returns the origin that the alerts name.
	Where func() notify.Where
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Grouped tells operators. It is safe for concurrent use.
type Grouped struct {
	config Config

	mu     sync.Mutex
	rounds map[notify.Cause]*round
}

var _ notify.Notifier = (*Grouped)(nil)

// New returns a Grouped. Its callers wait up to Gather, and as long as sending takes.
func New(c Config) *Grouped {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Grouped{config: c, rounds: map[notify.Cause]*round{}}
}

// round gathers the members of one alert.
type round struct {
	members []member
	// named are the members' jobs: a Scheduler and the Supervisor may bring one announcement at once.
	named map[string]bool
	done  chan struct{}
	// told is the time up to which announcements were sent, valid once done is closed; err is the failure.
	told time.Time
	err  error
}

// member is an announcement, or that an agent is silent.
type member struct {
	// counts: its announcement time is stored, so it is counted once. An undecidable job stores no such time.
	counts    bool
	at, since time.Time
	job       notify.AlertedJob
}

// Announce tells of a job that has stopped, or will be late. notify.ErrGathered: it will be, together with others.
func (g *Grouped) Announce(ctx context.Context, n notify.Notice) error {
	if !n.ForOperator() {
		return nil
	}
	cause := notify.Cause{Kind: notify.AlertStopped, Workflow: n.Workflow, Step: n.Step, ErrorKind: n.ErrorKind}
	if n.Late() {
		cause.Kind, cause.ErrorKind = notify.AlertLate, ""
	}
	at := n.At
	if at.IsZero() {
		at = g.config.Now()
	}
	since := at
	if !n.Since.IsZero() && n.Since.Before(since) {
		since = n.Since
	}
	return g.tell(ctx, cause, member{counts: n.Seq > 0, at: at, since: since, job: notify.AlertedJob{ID: n.Job, Reason: n.Reason, ExpectBy: n.ExpectBy}})
}

// AgentAlert alerts about an agent, unless an alert went out a short time ago.
func (g *Grouped) AgentAlert(ctx context.Context, agent, paused string) error {
	now, cause := g.config.Now(), notify.Cause{Kind: notify.AlertAgent, Agent: agent}
	if paused != "" {
		cause.Kind = notify.AlertPaused
	}
	err := g.tell(ctx, cause, member{at: now, since: now})
	if errors.Is(err, notify.ErrGathered) {
		return nil // The alert before says the same.
	}
	return err
}

// tell adds a member to its cause, and waits for their result.
func (g *Grouped) tell(ctx context.Context, cause notify.Cause, m member) error {
	g.mu.Lock()
	r := g.rounds[cause]
	leads := r == nil
	if leads {
		r = &round{named: map[string]bool{}, done: make(chan struct{})}
		g.rounds[cause] = r
	}
	if len(r.members) >= MaxGathered {
		g.mu.Unlock()
		return notify.ErrGathered
	}
	if m.job.ID == "" || !r.named[m.job.ID] {
		r.members = append(r.members, m)
		r.named[m.job.ID] = true
	}
	g.mu.Unlock()
	if leads {
		g.lead(ctx, cause, r)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !m.at.After(r.told) {
		return nil
	}
	return r.err
}

// lead runs a round: the first member does so for all.
func (g *Grouped) lead(ctx context.Context, cause notify.Cause, r *round) {
	defer close(r.done)
	p := g.place(cause)
	p.read(ctx)
	if p.open(g.config.Now()) {
		wait(ctx, Gather)
	}
	now := g.config.Now()
	g.mu.Lock()
	delete(g.rounds, cause) // later members join the next round
	members := r.members
	g.mu.Unlock()
	r.told, r.err = g.send(ctx, p, members, now)
}

// send sends the alert, or counts its jobs. told is the time up to which announcements were sent. If the count cannot
// be stored, the alert is sent: twice is better than never.
func (g *Grouped) send(ctx context.Context, p *place, members []member, now time.Time) (told time.Time, err error) {
	for range conflicts {
		rest, added := p.sift(members, now)
		if len(rest) == 0 {
			return p.told(), nil
		}
		open := p.open(now)
		next := p.state
		next.Count += added
		next.Since = firstSince(next.Since, rest)
		if open {
			next.Until = now.Add(claimed).UnixMilli()
		}
		kept := true
		if open || added > 0 {
			kept = p.keep(ctx, next)
		}
		switch {
		case !kept:
			p.read(ctx)
		case !open:
			return p.told(), notify.ErrGathered
		default:
			return g.deliver(ctx, p, rest, now)
		}
	}
	rest, _ := p.sift(members, now)
	if len(rest) > 0 && p.open(now) {
		return g.deliver(ctx, p, rest, now)
	}
	return p.told(), notify.ErrGathered
}

// deliver sends the alert of a cause unless another sender is at it, and records that.
func (g *Grouped) deliver(ctx context.Context, p *place, rest []member, now time.Time) (told time.Time, err error) {
	alert := notify.Alert{Cause: p.cause, Where: g.config.Where()}
	if p.cause.Agent == "" {
		alert.Count = max(p.state.Count, len(rest))
		alert.Since = time.UnixMilli(firstSince(p.state.Since, rest)).UTC()
		for _, m := range rest[:min(len(rest), notify.MaxAlertJobs)] {
			alert.Jobs = append(alert.Jobs, m.job)
		}
	}
	next := p.state
	if err := g.all(ctx, alert); err != nil {
		next.Until = 0 // The count stays for the next alert.
		p.keep(ctx, next)
		return p.told(), err
	}
	next.Count, next.Since, next.Told, next.Until = 0, 0, now.UnixMilli(), now.Add(Window).UnixMilli()
	if p.cause.Agent != "" {
		next.Until = now.Add(time.Hour).UnixMilli()
	}
	p.keep(ctx, next) // If that is lost, it is told twice.
	return now, nil
}

func (g *Grouped) all(ctx context.Context, alert notify.Alert) error {
	errs := make([]error, len(g.config.To))
	var wg sync.WaitGroup
	for i, to := range g.config.To {
		wg.Go(func() { errs[i] = to.Alert(ctx, alert) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func firstSince(first int64, members []member) int64 {
	for _, m := range members {
		if at := m.since.UnixMilli(); first == 0 || at < first {
			first = at
		}
	}
	return first
}

// place is what all processes know of a cause.
type place struct {
	places Places
	cause  notify.Cause
	name   string
	// seen is the text as it was read or written last, state its content for the cause.
	seen  string
	state state
}

// state is kept as JSON. Times are Unix milliseconds.
type state struct {
	Cause notify.Cause `json:"cause"`
	// Told is when an alert was sent last, Until when the next may be.
	Told  int64 `json:"told,omitempty"`
	Until int64 `json:"until,omitempty"`
	// Count is how many were announced since, and Since when the first was.
	Count int   `json:"count,omitempty"`
	Since int64 `json:"since,omitempty"`
}

func (g *Grouped) place(cause notify.Cause) *place {
	text, err := json.Marshal(cause)
	if err != nil {
		panic("groupnotify: a cause that is no JSON: " + err.Error())
	}
	h := fnv.New32a()
	_, _ = h.Write(text) // never fails
	return &place{places: g.config.Places, cause: cause, name: "alert-" + strconv.Itoa(int(h.Sum32()%MaxCauses))}
}

// read reads the stored text. An unreadable text, or one of another cause, does not prevent an alert.
func (p *place) read(ctx context.Context) {
	seen, err := p.places.Place(ctx, p.name)
	p.seen, p.state = seen, state{Cause: p.cause}
	var s state
	if err == nil && json.Unmarshal([]byte(seen), &s) == nil && s.Cause == p.cause {
		p.state = s
	}
}

// keep writes the state, unless it was written since it was read.
func (p *place) keep(ctx context.Context, next state) bool {
	text, err := json.Marshal(next)
	if err != nil {
		panic("groupnotify: a state that is no JSON: " + err.Error())
	}
	if p.places.KeepPlace(ctx, p.name, p.seen, string(text)) != nil {
		return false
	}
	p.seen, p.state = string(text), next
	return true
}

func (p *place) open(now time.Time) bool { return now.UnixMilli() >= p.state.Until }

// told is the time up to which announcements were sent.
func (p *place) told() time.Time {
	if p.state.Told == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.state.Told).Add(-skew)
}

// sift returns the members that no alert has covered, and how many are not counted yet.
func (p *place) sift(members []member, now time.Time) (rest []member, added int) {
	for _, m := range members {
		if !m.at.After(p.told()) {
			continue
		}
		rest = append(rest, m)
		if m.counts && now.Sub(m.at) < fresh {
			added++
		}
	}
	return rest, added
}
