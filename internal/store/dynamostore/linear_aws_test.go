//go:build aws

package dynamostore

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

func TestClaimsAndSubmissionsAreLinearizable(t *testing.T) {
	tab := newTable(t)
	storetest.Linearizable(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{Open: func() store.Store { return tab.open(t) }}
	})
}
