package sqlitestore

import (
	"context"
	"fmt"
	"time"
)

// metaProbed is when the store was asked last whether it can be written.
const metaProbed = "probed"

// Probe writes to the store, durably. An error says that it cannot be written now.
func (s *Store) Probe(ctx context.Context) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		g.durable = true
		return nil, g.setMeta(metaProbed, time.Now().UnixMilli())
	})
	if err != nil {
		return fmt.Errorf("write to the store: %w", err)
	}
	return nil
}
