package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// ErrLocked: another engine holds the folder.
var ErrLocked = errors.New("another engine uses this folder")

// LockFile is the name of the file that names the holder of its folder. A release before locks it alone.
const LockFile = "lock"

// FolderLock holds a folder for one engine.
type FolderLock struct {
	path, who string
	asked     chan struct{}
	released  chan struct{}
	once      sync.Once
}

// Lock holds a folder for one engine, and makes it, private, if there is none. When another holds it the error is
// ErrLocked and names the holder: process, host, since when. The kernel gives the lock back when the process ends,
// however it ends; the file DIR/lock stays.
func Lock(dir string) (*FolderLock, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	path := filepath.Join(dir, LockFile)
	locks, err := lockBoth(dir, path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	l := &FolderLock{
		path: path, who: fmt.Sprintf("process %d on %s, since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339)),
		asked: make(chan struct{}), released: make(chan struct{}),
	}
	if err := errors.Join(os.Chmod(path, privateFile), l.Say("")); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), unlock(locks))
	}
	// The goroutine holds the locks: a lock without a reference is closed by the garbage collector, with the engine still
	// running.
	go func() {
		defer close(l.released)
		<-l.asked
		// A failure here is harmless: the file's text counts only while the lock is held.
		_ = os.Truncate(path, 0)
		_ = unlock(locks)
	}()
	return l, nil
}

// lockBoth locks the folder itself and the file in it. The file can be removed, and an unlocked one be made in its
// place; a folder in use cannot be replaced so. Some file systems and Windows lock no folders: there the file has to
// do.
func lockBoth(dir, path string) (locks []*flock.Flock, err error) {
	folder, file := flock.New(dir, flock.SetFlag(os.O_RDONLY)), flock.New(path, flock.SetPermissions(privateFile))
	held, err := folder.TryLock()
	if err == nil && !held {
		return nil, fmt.Errorf("%w: %s", ErrLocked, holder(path))
	}
	locks = append(locks, folder)
	if held, err = file.TryLock(); err == nil && !held {
		err = fmt.Errorf("%w: %s", ErrLocked, holder(path))
	}
	if err != nil {
		return nil, errors.Join(err, unlock(locks))
	}
	return append(locks, file), nil
}

func unlock(locks []*flock.Flock) error {
	var errs []error
	for _, l := range locks {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Say adds more about the holder to the error of an engine that is refused the folder.
func (l *FolderLock) Say(more string) error {
	text := l.who
	if more != "" {
		text += ": " + more
	}
	// Written in place: another file under this name would not carry the lock.
	return os.WriteFile(l.path, []byte(text+"\n"), privateFile)
}

// Release gives the folder back. It may be called again.
func (l *FolderLock) Release() {
	l.once.Do(func() { close(l.asked) })
	<-l.released
}

func holder(path string) string {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "its name was in " + path + ", which was removed"
	}
	if who := strings.TrimSpace(string(text)); err == nil && who != "" {
		return who
	}
	return "it has not written its name"
}
