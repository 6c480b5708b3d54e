//go:build unix

package sqlitestore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// Whatever the umask, and whatever the files were before.
func TestWhatIsKeptIsPrivate(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		was := syscall.Umask(umask)
		dir := filepath.Join(t.TempDir(), "data")
		for round := range 2 {
			lock, err := sqlitestore.Lock(dir)
			check(t, err)
			path := filepath.Join(dir, "makegood.db")
			s := open(t, sqlitestore.Options{Path: path})
			create(t, s, round)
			wantPrivate(t, dir, "makegood.db", "makegood.db-wal", "makegood.db-shm", "lock")
			check(t, s.Shut())
			lock.Release()
			wantPrivate(t, dir, "makegood.db", "lock")
			check(t, os.Chmod(path, 0o644))
			check(t, os.Chmod(filepath.Join(dir, "lock"), 0o644))
		}
		syscall.Umask(was)
	}
}

func wantPrivate(t *testing.T, dir string, names ...string) {
	t.Helper()
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the folder is %v, %v, want 0700", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	if len(entries) != len(names) {
		t.Errorf("got %v, want %v", entries, names)
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v, %v, want 0600", name, info, err)
		}
	}
}
