package memstore

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// The shards: of the keys of jobs, of those of schedules, and of that of the holds.
const (
	jobShard = iota
	scheduleShard
	holdsShard
	shards
)

// Shards is 3: one of jobs, one of schedules, one of the holds.
func (s *Store) Shards() int { return shards }

// Due lists overdue entries; see store.Index. It does not lag.
func (s *Store) Due(_ context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch shard {
	case scheduleShard:
		return Due(s.scheduleKeys(), now, after, limit), nil
	case holdsShard:
		return Due(s.holdsKey(), now, after, limit), nil
	}
	return Due(s.keys(), now, after, limit), nil
}

// keys returns the keys of all jobs, zero where there is none, in no order. s.mu is held meanwhile.
func (s *Store) keys() iter.Seq[store.Entry] {
	return func(yield func(store.Entry) bool) {
		for id, stored := range s.jobs {
			if !yield(store.Entry{CompleteBy: stored.job.CompleteBy, Job: id}) {
				return
			}
		}
	}
}

// Due returns the page that store.Index's method of this name gives of an index with these keys, in any order.
func Due(keys iter.Seq[store.Entry], now time.Time, after store.Entry, limit int) []store.Entry {
	var due []store.Entry
	for e := range keys {
		if !e.CompleteBy.IsZero() && !e.CompleteBy.After(now) && compareEntries(e, after) > 0 {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, compareEntries)
	return due[:min(limit, len(due))]
}

func compareEntries(a, b store.Entry) int {
	return cmp.Or(a.CompleteBy.Compare(b.CompleteBy), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Schedule, b.Schedule))
}

// ListJobs lists jobs by their ids; see store.Lister. The cursor is the last one's.
func (s *Store) ListJobs(_ context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	after, err := filter.Open(cursor)
	if err != nil {
		return store.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var page store.Page
	sieve := store.NewSieve(filter, s.definition)
	for j := range s.after(after) {
		l := s.listed(j)
		switch shows, err := sieve.Shows(&l); {
		case err != nil:
			return store.Page{}, err
		case !shows:
		case len(page.Jobs) == max(1, limit):
			page.Cursor = filter.Seal(page.Jobs[len(page.Jobs)-1].ID)
			return page, nil
		default:
			page.Jobs = append(page.Jobs, l)
		}
	}
	return page, nil
}

// listed returns what a list has of a job: of one that is damaged what others keep beside its data. s.mu is held.
func (s *Store) listed(j job.Job) store.Listed {
	if s.jobs[j.ID].damaged {
		j = job.Job{
			ID: j.ID, Workflow: j.Workflow, ProcessState: j.ProcessState, FailureCount: j.FailureCount, CompleteBy: j.CompleteBy,
			CreatedAt: j.CreatedAt, Reason: j.Reason, FirstReason: j.FirstReason,
		}
	}
	return store.ListedOf(j)
}

// definition reads a definition. s.mu is held.
func (s *Store) definition(hash string) ([]byte, error) {
	definition, ok := s.definitions[hash]
	if !ok {
		return nil, store.ErrNotFound
	}
	return definition, nil
}

// scheduleMark is before the name of a schedule in the cursor of an audit; no job's id begins with it.
const scheduleMark = "/"

// AuditPage returns jobs by their ids, then schedules by their names; see store.Auditor. The cursor is the last one's.
func (s *Store) AuditPage(_ context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = max(1, limit)
	var page []store.Audited
	name, ofSchedules := strings.CutPrefix(cursor, scheduleMark)
	if !ofSchedules {
		for j := range s.after(cursor) {
			if len(page) == limit {
				return page, page[limit-1].Job, nil
			}
			page = append(page, audited(j))
		}
		name = ""
	}
	keys := slices.SortedFunc(s.scheduleKeys(), func(a, b store.Entry) int { return cmp.Compare(a.Schedule, b.Schedule) })
	for _, e := range keys {
		switch {
		case e.Schedule <= name || e.CompleteBy.IsZero():
		case len(page) == limit:
			return page, scheduleMark + name, nil
		default:
			page, name = append(page, store.Audited{Schedule: e.Schedule, CompleteBy: e.CompleteBy, Indexed: true}), e.Schedule
		}
	}
	return page, "", nil
}

func audited(j job.Job) store.Audited {
	finished := j.ProcessState.Finished()
	return store.Audited{
		Job: j.ID, ProcessState: j.ProcessState, CompleteBy: j.CompleteBy, Indexed: !j.CompleteBy.IsZero(),
		Told: finished && len(j.Untold) == 0, Untold: finished && len(j.Untold) > 0,
	}
}

// after returns the jobs with ids after id, in order. s.mu is held meanwhile.
func (s *Store) after(id string) iter.Seq[job.Job] {
	return func(yield func(job.Job) bool) {
		for _, next := range slices.Sorted(maps.Keys(s.jobs)) {
			if next > id && !yield(s.jobs[next].job) {
				return
			}
		}
	}
}
