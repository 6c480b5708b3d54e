package sim

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

// What the simulated store answers is what SQLite and DynamoDB answer: one suite holds all three.
func TestTheSimulatedStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := NewStore()
		return storetest.Harness{Open: func() store.Store { return s }, Damage: s.Damage}
	})
}
