package faultstore

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Auditor = (*Store)(nil)

// AuditPage reads a page of jobs; see store.Auditor. The inner store must be one.
func (s *Store) AuditPage(ctx context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	inner, ok := s.inner.(store.Auditor)
	if !ok {
		return nil, "", errors.New("audit: this store has no audit")
	}
	var jobs []store.Audited
	next, err := ask(ctx, s, "AuditPage", "", func() (next string, err error) {
		jobs, next, err = inner.AuditPage(ctx, cursor, limit)
		return next, err
	})
	if err != nil {
		return nil, "", err
	}
	return jobs, next, nil
}
