package sqlitestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A file that could not be flushed is never said to be durable: neither one that is closed, nor one that cannot be flushed.
func TestAFlushThatWasNotMadeIsAnError(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	check(t, err)
	check(t, sqlitestore.SyncFile(f))
	check(t, f.Close())
	if err := sqlitestore.SyncFile(f); err == nil {
		t.Error("a file that is closed: got no error, want one")
	}
	from, to, err := os.Pipe()
	check(t, err)
	defer from.Close()
	defer to.Close()
	if err := sqlitestore.SyncFile(to); err == nil {
		t.Error("a pipe: got no error, want one")
	}
}
