package embedded

import (
	"context"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// AuditPage reads a page of all jobs, and says which of them stand still; see store.Auditor.
func (e *Engine) AuditPage(ctx context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	page, next, err := e.auditor().AuditPage(ctx, cursor, limit)
	e.scheduler.Stands(ctx, page)
	return page, next, err
}

// auditor is the store that the engine works on, if it has an audit, or else its file.
func (e *Engine) auditor() store.Auditor {
	if a, ok := e.store.(store.Auditor); ok {
		return a
	}
	return e.file
}

// Wake puts back what an audit found; see scheduler.Scheduler.Wake.
func (e *Engine) Wake(ctx context.Context, id string) (job.Job, machine.Verdict, error) {
	return e.scheduler.Wake(ctx, id)
}
