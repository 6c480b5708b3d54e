package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/store"
)

// whyNot reads from the error of a write whether its condition failed, and then returns errCondition with the item as
// it stands; none: there is no item. DynamoDB answers without the item where there is none, and at times though there
// is one. So a failed condition without its item does not prove that there is none: the item is read, and where it
// cannot be, the outcome is unknown and the caller must ask again.
func (s *Store) whyNot(ctx context.Context, key item, failed error) (old item, err error) {
	old, err = asCondition(failed)
	if !errors.Is(err, errCondition) || len(old) > 0 {
		return old, err
	}
	old, err = s.get(ctx, "WhyNot", key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("condition failed, and the item that stands there cannot be read: %w", err)
	}
	return old, errCondition
}

// orConflict returns the error of a conditional write. ours: a former try of the same write has stored the item, so
// there is no error. The item of another write is store.ErrConflict.
func orConflict(err error, ours bool) error {
	switch {
	case !errors.Is(err, errCondition):
		return err
	case ours:
		return nil
	}
	return store.ErrConflict
}
