// Package filepayload keeps payloads in files, encrypted, in a folder of their own that one engine holds.
//
// # The folder
//
//	key                   32 random bytes, made with the folder
//	incoming/             uploads under way; the next Open deletes those of a dead process
//	JOB/SHA256            payloads of the submitter of a job
//	JOB/SHA256.AGENT      payloads of an agent
//
// JOB is the job's id in base32, so that ids which differ in case alone are apart on every file system.
//
// # Encryption
//
// Each file is sealed in pieces of 64 KB by AES-256-GCM (seal.go), under a key of its own that is derived from the
// folder's and bound to job and writer. So a piece that was changed, moved, left out or taken from another job's file
// is found when it is read, in a part as in the whole. The folder's key lies in the folder: that protects a copy of the
// files without it, and not the whole folder. Names of jobs and agents, hashes and lengths are not encrypted.
//
// # Deletion
//
// Drop deletes the payloads of an expired job, Collect those without a job. Neither touches payloads written or kept
// since.
package filepayload

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

var _ payload.Store = (*Store)(nil)

const (
	// Folder is the name of the folder in that of an engine.
	Folder = "payloads"

	keyFile  = "key"
	incoming = "incoming"
	// collectJobs is how many jobs one Collect looks at.
	collectJobs = 256
)

// names writes ids as names of folders, of at most 205 characters.
var names = base32.HexEncoding.WithPadding(base32.NoPadding)

func folderOf(job string) string { return strings.ToLower(names.EncodeToString([]byte(job))) }

// jobOf is the inverse of folderOf.
func jobOf(folder string) (job string, is bool) {
	id, err := names.DecodeString(strings.ToUpper(folder))
	return string(id), err == nil && domain.CheckJobID(string(id)) == nil
}

// Store keeps payloads in a folder.
type Store struct {
	dir string
	key []byte
	// mu is held while a file gets its name, is kept, and is dropped.
	mu sync.Mutex
	// walk is how far Collect has come; nil: it begins.
	walk *os.File
	// now is the clock.
	now func() time.Time
}

// Open opens a folder. A missing one is made, for its owner alone, at the first write: without large payloads there is
// none. Only one process may have it open.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, now: time.Now}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	return s, nil
}

// ready makes the folder, if it was not there when it was opened.
func (s *Store) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return nil
	}
	return s.make()
}

// make makes the missing parts of the folder, and deletes unfinished uploads.
func (s *Store) make() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("payload folder: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, incoming)); err != nil {
		return fmt.Errorf("payload folder: an unfinished write: %w", err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, incoming), 0o700); err != nil {
		return fmt.Errorf("payload folder: %w", err)
	}
	err := s.readKey()
	if errors.Is(err, fs.ErrNotExist) {
		err = s.makeKey()
	}
	if err != nil {
		s.key = nil
		return fmt.Errorf("payload folder: %w", err)
	}
	return nil
}

func (s *Store) readKey() error {
	key, err := os.ReadFile(filepath.Join(s.dir, keyFile))
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("its %s has %d bytes, want %d: put back the one that it was made with", keyFile, len(key), keyBytes)
	}
	s.key = key
	return err
}

// makeKey makes the key of a new folder. It makes none beside files that were sealed with a lost key: they could never
// be read again, without an apparent reason.
func (s *Store) makeKey() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != incoming {
			return fmt.Errorf("its %s is gone, and there are payloads that were sealed with it: put it back, or move the folder away", keyFile)
		}
	}
	s.key = make([]byte, keyBytes)
	_, _ = rand.Read(s.key) // never fails, says its documentation
	fresh := filepath.Join(s.dir, incoming, keyFile)
	if err := os.WriteFile(fresh, s.key, 0o600); err != nil {
		return err
	}
	if err := syncPath(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(s.dir, keyFile)); err != nil {
		return err
	}
	return errors.Join(syncPath(s.dir), syncPath(filepath.Dir(s.dir)))
}

// Write stores bytes; see payload.Store. It holds three pieces in memory.
func (s *Store) Write(ctx context.Context, at payload.Place, from io.Reader) (payload.Written, error) {
	w, err := s.write(ctx, at, from)
	if err != nil {
		return payload.Written{}, fmt.Errorf("write a payload of job %s: %w", at.Job, err)
	}
	return w, nil
}

func (s *Store) write(ctx context.Context, at payload.Place, from io.Reader) (w payload.Written, err error) {
	if err := at.Check(); err != nil {
		return w, err
	}
	if err := s.ready(); err != nil {
		return w, err
	}
	file, err := os.CreateTemp(filepath.Join(s.dir, incoming), "*")
	if err != nil {
		return w, err
	}
	// After the rename this finds no file to remove.
	defer func() { _ = os.Remove(file.Name()) }()
	limited := payload.Limit(from)
	if err = s.seal(ctx, at, file, limited); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return w, err
	}
	w = limited.Written()
	return w, s.name(file.Name(), s.path(at, w.SHA256))
}

// name puts a file that is on the disk under its name, for good.
func (s *Store) name(file, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Mkdir(filepath.Dir(path), 0o700); err == nil {
		if err := syncPath(s.dir); err != nil {
			// The next write makes it anew, and tries again.
			return errors.Join(err, os.Remove(filepath.Dir(path)))
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Rename(file, path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

func (s *Store) path(at payload.Place, sha256 string) string {
	name := sha256
	if at.By != "" {
		name += "." + at.By
	}
	return filepath.Join(s.dir, folderOf(at.Job), name)
}

// find returns the path of a payload, if its file has the length that p asks for.
func (s *Store) find(job string, p makegood.Payload) (path string, err error) {
	at := payload.Place{Job: job, By: p.By}
	if err := errors.Join(at.Check(), p.Check()); err != nil {
		return "", fmt.Errorf("%w: %w", payload.ErrNotFound, err)
	}
	path = s.path(at, p.SHA256)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", payload.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%w: %w", payload.ErrDenied, err)
	case err != nil:
		return "", err
	case info.Size() != sealedBytes(p.Bytes):
		return "", fmt.Errorf("%w: its file has %d bytes, and not %d", payload.ErrAltered, info.Size(), sealedBytes(p.Bytes))
	}
	return path, nil
}

// Open reads bytes; see payload.Store. A part is checked as surely as the whole.
func (s *Store) Open(_ context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	r, err := s.open(job, p, offset, n)
	if err != nil {
		return nil, fmt.Errorf("open %v of job %s: %w", p, job, err)
	}
	return r, nil
}

func (s *Store) open(job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	path, err := s.find(job, p)
	if err != nil {
		return nil, err
	}
	if err := payload.CheckRange(p, offset, n); err != nil {
		return nil, err
	}
	if n < 0 {
		n = p.Bytes - offset
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := s.unseal(payload.Place{Job: job, By: p.By}, file, p.Bytes, offset, n)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if n == p.Bytes {
		return payload.Checked(p, r), nil
	}
	return r, nil
}

// Keep makes a payload young again; see payload.Store.
func (s *Store) Keep(_ context.Context, job string, p makegood.Payload) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, err := s.find(job, p)
	if err == nil {
		err = os.Chtimes(path, time.Time{}, s.now())
	}
	if err != nil {
		return fmt.Errorf("keep %v of job %s: %w", p, job, err)
	}
	return nil
}

// Drop deletes the payloads of a job that were last written or kept before a time. Younger ones belong to another job
// of the same id, present or future, and stay.
func (s *Store) Drop(_ context.Context, job string, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.drop(filepath.Join(s.dir, folderOf(job)), before); err != nil {
		return fmt.Errorf("drop the payloads of job %s: %w", job, err)
	}
	return nil
}

func (s *Store) drop(folder string, before time.Time) error {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	left := 0
	for _, f := range files {
		info, infoErr := f.Info()
		if infoErr != nil || !info.ModTime().Before(before) {
			left++
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(folder, f.Name())))
	}
	if left == 0 && err == nil {
		err = os.Remove(folder)
	}
	return err
}

// Collect looks at the next jobs of the folder, and deletes the payloads of those that known does not know, if they
// were last written or kept more than limits.KeepPayload ago: uploads without a submission, and remains of expired jobs
// after a crash. It looks at a bounded number of jobs each time, and reports whether there are more in this round.
//
// A submission may come while it looks: it has written or kept its payloads before its job is known, so they are young
// when their age is looked at again, under the lock that writing and keeping take.
func (s *Store) Collect(ctx context.Context, known func(ctx context.Context, job string) (bool, error)) (more bool, err error) {
	entries, err := s.next()
	if err != nil {
		return false, fmt.Errorf("collect payloads: %w", err)
	}
	old := s.now().Add(-limits.KeepPayload)
	for _, e := range entries {
		job, is := jobOf(e.Name())
		if !is || !e.IsDir() || !allBefore(filepath.Join(s.dir, e.Name()), old) {
			continue
		}
		there, err := known(ctx, job)
		if err != nil {
			return false, fmt.Errorf("collect payloads of job %s: %w", job, err)
		}
		if there {
			continue
		}
		if err := s.Drop(ctx, job, old); err != nil {
			return false, err
		}
	}
	return len(entries) == collectJobs, nil
}

// next returns the next entries of the folder; none at its end, after which it begins anew.
func (s *Store) next() ([]os.DirEntry, error) {
	if s.walk == nil {
		walk, err := os.Open(s.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.walk = walk
	}
	entries, err := s.walk.ReadDir(collectJobs)
	if err != nil {
		s.stopWalk()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

func (s *Store) stopWalk() {
	if s.walk != nil {
		_ = s.walk.Close() // It was open for reading only.
		s.walk = nil
	}
}

// Close ends Collect. What reads and writes may go on.
func (s *Store) Close() { s.stopWalk() }

// allBefore reports whether no file of a folder is younger than a time.
func allBefore(folder string, old time.Time) bool {
	files, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || !info.ModTime().Before(old) {
			return false
		}
	}
	return true
}

// syncPath makes the content of a file or a folder survive the loss of power.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
