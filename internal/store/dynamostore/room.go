package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
)

// asidePrefix is before the hash in the sort key of what a damaged job held before it was parked.
const asidePrefix = "aside#"

// makeRoom makes the hot item of a job smaller that is too full to be parked: no save of this release leaves one so.
// The facts about its steps go into details. The data of a job that cannot be decoded goes into an item of its own,
// from which it can be mended, and leaves the job as damaged as it was. store.ErrConflict: the item has changed.
func (s *Store) makeRoom(ctx context.Context, id string) error {
	it, err := s.get(ctx, "LoadFull", hotKey(id))
	if err != nil || sizeOf(it) <= maxHot {
		return err
	}
	u := newUpdate()
	j, err := s.load(ctx, id)
	switch {
	case errors.Is(err, store.ErrDamaged):
		data := asBytes(it[attrData])
		aside := partKey(id, keyOf(asidePrefix, data))
		aside[attrData] = blob(data)
		if err := s.putPart(spend.Without(ctx), "PutAside", aside); err != nil {
			return fmt.Errorf("put the data of a damaged job aside: %w", err)
		}
		u.remove(u.attr(attrData))
	case err != nil:
		return err
	default:
		stored, _ := s.spills.get(id)
		p := packedWith(j, details(j, alive(j, stored), begun), 0)
		if err := s.putParts(ctx, id, p); err != nil {
			return err
		}
		u.setPacked(p)
	}
	u.raise(u.attr(attrRev))
	u.when(u.attr(attrRev) + " = " + u.value("rev", number(asInt(it[attrRev]))))
	_, err = s.update(ctx, "MakeRoom", hotKey(id), u)
	if errors.Is(err, errCondition) {
		return store.ErrConflict
	}
	return err
}
