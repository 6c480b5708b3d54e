package scheduler

import (
	"context"

	"github.com/makegood-dev/makegood/internal/job"
)

// enter adds entries to the history of a job that is about to be saved: a page, which is written before the save that
// names it. If that save is lost, no job names the page.
func (v *values) enter(j *job.Job, entries []job.Entry) {
	if len(entries) == 0 {
		return
	}
	var page job.Page
	j.History, page = j.History.With(j.Birth, entries)
	v.keep(page.Key, page.Body)
}

// shorten lets go of the pages of a long history between its beginning and its end. Pages that it leaves, the next
// entry takes along.
func (s *Scheduler) shorten(ctx context.Context, j job.Job) {
	after, before, ok := j.History.Between()
	if !ok {
		return
	}
	if err := s.config.Payloads.DropPages(ctx, j.ID, after, before); err != nil {
		s.config.Logger.WarnContext(ctx, "the middle of a long history stays", "job", j.ID, "error", err)
	}
}
