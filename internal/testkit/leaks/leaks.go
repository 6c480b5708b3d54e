// Package leaks finds goroutines that tests leave behind. Only tests import it.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. Package goleak alone waits half a second, which a busy machine may
// need to run those that are about to end.
const patience = time.Minute

// Main runs the tests of a package, and ends the process; with an error when they pass and leave goroutines behind.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := find(patience); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails the test for each goroutine that is still there, but for those that options leave out.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options...); err != nil {
		t.Error(err)
	}
}

func find(within time.Duration, options ...goleak.Option) error {
	for began := time.Now(); ; {
		if err := goleak.Find(options...); err == nil || time.Since(began) > within {
			return err
		}
	}
}
