package memstore_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

func harness(*testing.T) storetest.Harness {
	s := memstore.New()
	same := func() store.Store { return s }
	return storetest.Harness{
		Open: same, Reopen: same, Damage: s.Damage, Overwrite: s.Overwrite, Fill: func(slot store.Slot, _ string) { s.FillClaim(slot) },
		Full: s.Overwrite,
	}
}

func TestTheContractHolds(t *testing.T) { storetest.Run(t, harness) }

func TestClaimsAndSubmissionsAreLinearizable(t *testing.T) { storetest.Linearizable(t, harness) }
