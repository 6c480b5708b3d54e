package repair

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	suffix      = ".jsonl"
	lockSuffix  = ".lock"
	privateFile = 0o600
	privateDir  = 0o700
	// maxLine bounds a line of a journal, in bytes: the first has all ids, of 128 bytes at most, in quotes.
	maxLine = MaxJobs*140 + 64<<10
)

// journal is the file of an order: the order, then a line for each answer, then its end. nil: it is kept in memory.
type journal struct {
	file *os.File
	lock *flock.Flock
}

// line is a line of a journal behind its order.
type line struct {
	Job     string    `json:"job,omitempty"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	Stopped bool      `json:"stopped,omitempty"`
}

// write adds a line. It is not flushed: a line that is lost costs a question.
func (j *journal) write(l line) error {
	if j == nil {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// end adds that it has ended, on the disk.
func (j *journal) end(at time.Time, stopped bool) error {
	if j == nil {
		return nil
	}
	return errors.Join(j.write(line{EndedAt: at, Stopped: stopped}), j.file.Sync())
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.file.Close(), j.lock.Close())
}

// create makes the journal of an order. When it returns the order is on the disk, whole.
func (k *Keeper) create(o Order) (*journal, error) {
	if k.dir == "" {
		return nil, nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(k.dir, o.Name+suffix)
	lock, err := hold(path)
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, fmt.Errorf("another process has %s", path)
	}
	file, err := os.CreateTemp(k.dir, "new-*")
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync()); err == nil {
		err = errors.Join(os.Rename(file.Name(), path), syncFolder(k.dir))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()), lock.Close())
	}
	return &journal{file, lock}, nil
}

// syncFolder makes renames in a folder survive a power cut.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// hold takes the lock of a journal; nil: another process has it. The kernel gives it back when the process ends.
func hold(path string) (*flock.Flock, error) {
	lock := flock.New(path+lockSuffix, flock.SetPermissions(privateFile))
	held, err := lock.TryLock()
	if err != nil || !held {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// read reads the folder, and continues orders that have not ended.
func (k *Keeper) read() error {
	if err := os.MkdirAll(k.dir, privateDir); err != nil {
		return err
	}
	names, err := fs.Glob(os.DirFS(k.dir), "*"+suffix)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		r, err := load(filepath.Join(k.dir, name))
		if err != nil {
			k.logger.Warn("a repair cannot be read, and is left alone", "file", name, "error", err)
			continue
		}
		k.known[r.progress.Name] = r
		if r.progress.Goes() && !r.progress.Elsewhere {
			k.carry(r)
		}
	}
	return nil
}

// lookElsewhere reloads orders that another process carries out, and takes over those of a dead one. The caller holds
// mu.
func (k *Keeper) lookElsewhere() {
	for name, old := range k.known {
		if !old.progress.Elsewhere {
			continue
		}
		r, err := load(filepath.Join(k.dir, name+suffix))
		if err != nil {
			k.logger.Warn("a repair cannot be read", "repair", name, "error", err)
			continue
		}
		k.known[name] = r
		if r.progress.Goes() && !r.progress.Elsewhere {
			k.carry(r)
		}
	}
}

// load reads the journal of an order, and takes it over if it has not ended and no process has it.
func load(path string) (r *run, err error) {
	lock, err := hold(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, privateFile)
	if err != nil {
		return nil, errors.Join(err, closeLock(lock))
	}
	r = &run{answered: map[string]bool{}}
	if err := r.replay(file); err != nil {
		return nil, errors.Join(err, file.Close(), closeLock(lock))
	}
	if want := strings.TrimSuffix(filepath.Base(path), suffix); r.progress.Name != want {
		return nil, errors.Join(fmt.Errorf("it is of %.80q", r.progress.Name), file.Close(), closeLock(lock))
	}
	r.progress.Kept = true
	if lock == nil || !r.progress.Goes() {
		r.progress.Elsewhere = lock == nil && r.progress.Goes()
		return r, errors.Join(file.Close(), closeLock(lock))
	}
	r.file = &journal{file, lock}
	return r, r.file.mend()
}

// mend ends a line that a crash cut off, so that the next begins on its own line.
func (j *journal) mend() error {
	_, err := j.file.Write([]byte("\n"))
	return err
}

func closeLock(lock *flock.Flock) error {
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// replay reads a journal. A line of invalid JSON was cut off, and counts as lost.
func (r *run) replay(file *os.File) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	if !lines.Scan() {
		return errors.Join(errors.New("it is empty"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &r.progress.Order); err != nil {
		return err
	}
	if err := r.progress.check(); err != nil {
		return err
	}
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		if !l.EndedAt.IsZero() {
			r.progress.EndedAt, r.progress.Stopped = l.EndedAt, l.Stopped
			continue
		}
		if l.Outcome != "" {
			r.count(l.Job, answer{l.Outcome, l.Reason})
		}
	}
	return lines.Err()
}

// forget removes the journal of an order.
func (k *Keeper) forget(r *run) {
	if k.dir == "" {
		return
	}
	path := filepath.Join(k.dir, r.progress.Name+suffix)
	if err := errors.Join(r.file.close(), os.Remove(path), os.Remove(path+lockSuffix)); err != nil {
		k.logger.Warn("a repair that ended long ago could not be removed", "file", path, "error", err)
	}
}
