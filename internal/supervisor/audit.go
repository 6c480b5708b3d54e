package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// A sweep finds the keys in the index. The audit walks slowly through all jobs, a page at a time, and finds those
// with a wrong or missing index entry: no other part would ever look at them.
const (
	// DefaultAuditPage is how many items a page of the audit looks at.
	DefaultAuditPage = 1000
	// AuditRest is how long the audit rests at the end before it begins again.
	AuditRest = time.Hour

	auditName = "audit"
	// restMark is before the time, in milliseconds, until which the audit rests; no cursor begins with it.
	restMark = "@"
)

// AuditResult says what a page of the audit did.
type AuditResult struct {
	// Audited is how many jobs were looked at, Stray how many were faulty, and Sent how many jobs and schedules were sent
	// to the Scheduler.
	Audited, Stray, Sent int
}

// Audit looks at the next page of all jobs, and tells the Scheduler about those that no sweep would find. Its
// progress is stored after that, so a page is repeated rather than left out. Several may audit at once without harm.
func (s *Supervisor) Audit(ctx context.Context) (AuditResult, error) {
	r, err := s.audit(ctx)
	s.stats.Add(func(t *Stats) {
		t.Audited += int64(r.Audited)
		t.Stray += int64(r.Stray)
	})
	return r, err
}

func (s *Supervisor) audit(ctx context.Context) (AuditResult, error) {
	var r AuditResult
	if s.config.Auditor == nil {
		return r, nil
	}
	seen, err := s.config.Places.Place(ctx, auditName)
	if err != nil {
		return r, fmt.Errorf("audit: %w", err)
	}
	from, rests := s.auditFrom(seen)
	if rests {
		return r, nil
	}
	page, next, err := s.config.Auditor.AuditPage(ctx, from, s.config.AuditPage)
	if errors.Is(err, store.ErrNotFound) {
		// The place belongs to another walk: begin anew.
		page, next, err = s.config.Auditor.AuditPage(ctx, "", s.config.AuditPage)
	}
	if err != nil {
		return r, err
	}
	lost := s.strays(ctx, page)
	r.Audited, r.Stray = len(store.AuditedJobs(page)), lost.found
	if r.Sent, err = s.send(ctx, append(lost.keyless, s.farOff(page)...), atOnce); err != nil {
		return r, err
	}
	if next == "" {
		next = restMark + strconv.FormatInt(s.config.Now().Add(AuditRest).UnixMilli(), 10)
	}
	if err := s.config.Places.KeepPlace(ctx, auditName, seen, next); err != nil && !errors.Is(err, store.ErrConflict) {
		return r, fmt.Errorf("audit: %w", err)
	}
	return r, nil
}

// auditFrom returns the cursor from which the audit goes on, or says that it rests.
func (s *Supervisor) auditFrom(place string) (cursor string, rests bool) {
	text, isRest := strings.CutPrefix(place, restMark)
	if !isRest {
		return place, false
	}
	until, err := strconv.ParseInt(text, 10, 64)
	// A rest longer than any process takes comes from a wrong clock.
	left := time.UnixMilli(until).Sub(s.config.Now())
	return "", err == nil && 0 < left && left <= AuditRest
}

// lost are the strays of a page: their number, and the ones to send to the Scheduler.
type lost struct {
	found   int
	keyless []store.Entry
}

// strays names the faults of the jobs of a page. An extra key is no harm: the sweep comes to it, and the Scheduler
// removes it.
func (s *Supervisor) strays(ctx context.Context, page []store.Audited) lost {
	var l lost
	for _, a := range page {
		stray := a.Stray()
		if stray == "" {
			continue
		}
		l.found++
		s.config.Strays.WarnContext(ctx, "stray job", "job", a.Job, "status", a.ProcessState, "why", stray)
		if stray == store.StrayUnfinished || stray == store.StrayUntold {
			l.keyless = append(l.keyless, store.Entry{CompleteBy: a.CompleteBy, Job: a.Job})
		}
	}
	return l
}

// farOff are the jobs and schedules of a page that no sweep will look at for long. The Scheduler can tell waiting
// from standing still: it gets each, with its key, and leaves waiting ones alone.
func (s *Supervisor) farOff(page []store.Audited) []store.Entry {
	var far []store.Entry
	for _, a := range page {
		if a.FarOff(s.config.Now()) {
			far = append(far, store.Entry{CompleteBy: a.CompleteBy, Job: a.Job, Schedule: a.Schedule})
		}
	}
	return far
}

// memory keeps places for as long as the process lives.
type memory struct {
	mu     sync.Mutex
	places map[string]string
}

var _ store.Places = (*memory)(nil)

// Place returns the stored text; see store.Places.
func (m *memory) Place(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places[name], nil
}

// KeepPlace keeps a place; see store.Places.
func (m *memory) KeepPlace(_ context.Context, name, seen, place string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places[name] != seen {
		return store.ErrConflict
	}
	if m.places == nil {
		m.places = make(map[string]string)
	}
	m.places[name] = place
	return nil
}
