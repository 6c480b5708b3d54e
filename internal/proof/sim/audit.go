package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Auditor = (*Store)(nil)

// AuditPage is what store.Auditor says, in the order of ids.
func (s *Store) AuditPage(_ context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = max(1, limit)
	var jobs []store.Audited
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		if id <= cursor {
			continue
		}
		if len(jobs) == limit {
			return jobs, jobs[limit-1].Job, nil
		}
		job := s.jobs[id]
		jobs = append(jobs, store.Audited{
			Job: id, ProcessState: job.ProcessState, CompleteBy: job.CompleteBy, Indexed: !job.CompleteBy.IsZero(),
			Told:   job.ProcessState.Finished() && len(job.Untold) == 0,
			Untold: job.ProcessState.Finished() && len(job.Untold) > 0,
		})
	}
	return jobs, "", nil
}
