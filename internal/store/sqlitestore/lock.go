package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// ErrLocked: another engine holds the folder.
var ErrLocked = errors.New("another engine uses this folder")

// Lock holds a folder for one engine, and makes it, private, if there is none. When another holds it the error is
// ErrLocked and says who: process, host, since when. The kernel gives the lock back when the process
// ends, however it ends. release gives it back earlier; the file DIR/lock stays.
func Lock(dir string) (release func(), err error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	path := filepath.Join(dir, "lock")
	lock := flock.New(path, flock.SetPermissions(privateFile))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !held {
		return nil, fmt.Errorf("lock %s: %w: %s", dir, ErrLocked, holder(path))
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	who := fmt.Sprintf("process %d on %s, since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	// Written in place: another file under this name would not carry the lock.
	if err := errors.Join(os.Chmod(path, privateFile), os.WriteFile(path, []byte(who), privateFile)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), lock.Close())
	}
	return keep(lock, path), nil
}

// keep holds on to the lock until it is released. The goroutine is what holds it: a lock that nothing
// refers to is closed by the garbage collector, with the engine still running.
func keep(lock *flock.Flock, path string) (release func()) {
	asked, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-asked
		// Nothing is lost when this fails: what the file says counts only while the lock is held.
		_ = os.Truncate(path, 0)
		_ = lock.Close()
	}()
	return sync.OnceFunc(func() {
		close(asked)
		<-done
	})
}

func holder(path string) string {
	text, err := os.ReadFile(path)
	if who := strings.TrimSpace(string(text)); err == nil && who != "" {
		return who
	}
	return "it has not said who it is"
}
