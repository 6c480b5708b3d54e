package bulk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	// maxJournal is how many bytes a journal has before no more answers are written to it.
	maxJournal = 256 << 20
)

// journal is the file of an order: the order, then a line for each answer, then its end. nil: it is kept in memory. Its
// lock is nil where another process has that.
type journal struct {
	file *os.File
	lock *flock.Flock
	path string
	size int64
}

// line is a line of a journal behind its order.
type line struct {
	Job     string    `json:"job,omitempty"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	Stopped bool      `json:"stopped,omitempty"`
}

// write adds a line. It is not flushed: a line that is lost, or is one too many, costs a question.
func (j *journal) write(l line) error {
	if j == nil || j.size > maxJournal && l.EndedAt.IsZero() {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	n, err := j.file.Write(append(text, '\n'))
	j.size += int64(n)
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
	switch {
	case j == nil:
		return nil
	case j.lock == nil:
		return j.file.Close()
	}
	return errors.Join(j.file.Close(), j.lock.Close())
}

// remove removes the file, and gives its lock back.
func (j *journal) remove() error {
	if j == nil {
		return nil
	}
	return errors.Join(os.Remove(j.path), j.close(), os.Remove(j.path+lockSuffix))
}

// keep makes the journal of a run. When it returns the order is on the disk, whole.
func (r *Run) keep(path string) (err error) {
	r.file, err = create(path, r.progress.Order)
	r.progress.Kept = err == nil
	return err
}

func create(path string, o Order) (*journal, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	lock, err := hold(path)
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, fmt.Errorf("another process has %s", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync()); err == nil {
		err = errors.Join(os.Rename(file.Name(), path), syncFolder(filepath.Dir(path)))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()), lock.Close())
	}
	return &journal{file: file, lock: lock, path: path}, nil
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

// load reads the journal of an order, and takes it over if the order has not ended and no process has it. check may
// refuse the order.
func load(path string, check func(Order) error, heard func(string, Answer)) (*Run, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, privateFile)
	if err != nil {
		return nil, err
	}
	lock, err := hold(path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r, j := Begin(Order{}), &journal{file: file, lock: lock, path: path}
	if err := r.replay(file, check, heard); err != nil {
		return nil, errors.Join(err, j.close())
	}
	r.progress.Kept = true
	if lock == nil || !r.progress.Goes() {
		r.progress.Elsewhere = lock == nil && r.progress.Goes()
		return r, j.close()
	}
	r.file = j
	return r, j.mend()
}

// mend ends a line that a crash cut off, so that the next begins on its own line.
func (j *journal) mend() (err error) {
	if _, err = j.file.Write([]byte("\n")); err == nil {
		j.size, err = j.file.Seek(0, io.SeekEnd)
	}
	return err
}

// replay reads a journal. A line of invalid JSON was cut off, and its job is asked again.
func (r *Run) replay(file *os.File, check func(Order) error, heard func(string, Answer)) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	if !lines.Scan() {
		return errors.Join(errors.New("it is empty"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &r.progress.Order); err != nil {
		return err
	}
	if err := check(r.progress.Order); err != nil {
		return err
	}
	for lines.Scan() {
		var l line
		if len(lines.Bytes()) > 0 && json.Unmarshal(lines.Bytes(), &l) != nil {
			r.progress.Damaged++
			continue
		}
		if !l.EndedAt.IsZero() {
			r.progress.EndedAt, r.progress.Stopped = l.EndedAt, l.Stopped
			continue
		}
		if a := (Answer{Outcome: l.Outcome, Reason: l.Reason}); l.Outcome != "" && !r.answered[l.Job] {
			r.count(l.Job, a)
			heard(l.Job, a)
		}
	}
	return lines.Err()
}
