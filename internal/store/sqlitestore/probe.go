package sqlitestore

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// metaProbed is when the store was asked last whether it can be written.
const metaProbed = "probed"

// Probe writes to the store, durably. An error says that it cannot be written now.
func (s *Store) Probe(ctx context.Context) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		g.durable = true
		return nil, g.setMeta(metaProbed, time.Now().UnixMilli())
	})
	return store.About(err, "write to the store")
}
