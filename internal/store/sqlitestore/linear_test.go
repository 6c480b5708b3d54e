package sqlitestore_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/store/storetest"
)

func TestClaimsAndSubmissionsAreLinearizable(t *testing.T) {
	for name, cacheSteps := range map[string]int{"with its cache": 0, "without a cache": -1} {
		t.Run(name, func(t *testing.T) {
			storetest.Linearizable(t, func(t *testing.T) storetest.Harness { return harness(t, cacheSteps) })
		})
	}
}
