// Package backup copies the folder of an embedded engine while the engine works, and restores such a copy. A copy is a
// folder with the store, the large payloads, the journals of repairs, and a list of all files and hashes.
//
// The store is copied first, as a snapshot of one moment. A payload is written before a job refers to it, so the
// payloads that are copied after it are all that its jobs refer to, but for jobs that expired meanwhile.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

const (
	// listFile is the name of the list in a copy. It is written last: a folder without it is no whole copy.
	listFile = "backup.json"
	// format is the version of the list.
	format = 1
	// unreadable is left out: a payload that was being written when the copy was made.
	unreadable = "incoming"
)

// UsageError says why the named folders cannot be used. No file was written.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// List is the table of contents of a copy.
type List struct {
	Format int       `json:"format"`
	At     time.Time `json:"at"`
	// Jobs is the number of jobs, Unfinished the number of those that have not ended.
	Jobs       int64 `json:"jobs"`
	Unfinished int64 `json:"unfinished"`
	Schema     int64 `json:"schema"`
	Bytes      int64 `json:"bytes"`
	// Files has the SHA-256 of each file by its path, with slashes.
	Files map[string]string `json:"files"`
}

func usage(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Make copies the folder dir of an engine, which may work on it, to the folder to: a missing or an empty one.
func Make(ctx context.Context, dir, to string, now time.Time) (List, error) {
	if _, err := os.Stat(filepath.Join(dir, embedded.DataFile)); err != nil {
		return List{}, usage("%s is no folder of an engine: %w", dir, err)
	}
	if err := mustBeEmpty(to); err != nil {
		return List{}, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return List{}, err
	}
	snapshot, err := sqlitestore.Copy(ctx, filepath.Join(dir, embedded.DataFile), filepath.Join(to, embedded.DataFile))
	if err != nil {
		return List{}, err
	}
	l := List{Format: format, At: now.UTC(), Jobs: snapshot.Jobs, Unfinished: snapshot.Unfinished, Schema: snapshot.Schema, Files: map[string]string{}}
	if err := l.note(to, embedded.DataFile); err != nil {
		return List{}, err
	}
	for _, folder := range embedded.Beside() {
		if err := l.copyFolder(ctx, dir, to, folder); err != nil {
			return List{}, err
		}
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return List{}, err
	}
	return l, write(filepath.Join(to, listFile), text)
}

// note adds a file of a folder to the list.
func (l *List) note(folder, name string) error {
	sum, n, err := sumOf(filepath.Join(folder, filepath.FromSlash(name)))
	l.Files[name] = sum
	l.Bytes += n
	return err
}

// copyFolder copies a folder that stands beside the store, if it is there. A file that goes meanwhile is an expired
// job's.
func (l *List) copyFolder(ctx context.Context, from, to, folder string) error {
	err := filepath.WalkDir(filepath.Join(from, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && entry.Name() == unreadable:
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		if err := copyFile(path, filepath.Join(to, name)); err != nil {
			return err
		}
		return l.note(to, filepath.ToSlash(name))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Restore makes of the copy from the folder dir of an engine. dir must not be there, or be empty: no file is
// overwritten. Every file is compared with the list, and the store is checked, before an engine could begin on it.
func Restore(ctx context.Context, from, dir string) (List, error) {
	l, err := Read(from)
	if err != nil {
		return List{}, err
	}
	release, err := hold(dir)
	if err != nil {
		return List{}, err
	}
	defer release()
	for name := range l.Files {
		if name == embedded.DataFile {
			continue
		}
		if err := errors.Join(ctx.Err(), l.bring(from, dir, name, name)); err != nil {
			return List{}, err
		}
	}
	// The store comes last and under another name: a folder that was restored by half has none.
	const half = embedded.DataFile + ".restoring"
	if err := l.bring(from, dir, embedded.DataFile, half); err != nil {
		return List{}, err
	}
	path := filepath.Join(dir, half)
	snapshot, err := sqlitestore.Check(ctx, path)
	if err != nil {
		return List{}, err
	}
	if snapshot.Jobs != l.Jobs {
		return List{}, fmt.Errorf("%s has %d jobs, and its list says %d", from, snapshot.Jobs, l.Jobs)
	}
	if err := sqlitestore.Restored(path); err != nil {
		return List{}, err
	}
	return l, os.Rename(path, filepath.Join(dir, embedded.DataFile))
}

// hold takes the lock of the folder, as an engine does, and makes the folder if needed. The error names the holder.
func hold(dir string) (release func(), err error) {
	if err := mustBeEmpty(dir); err != nil {
		if lock, locked := sqlitestore.Lock(dir); locked == nil {
			lock.Release()
		} else if errors.Is(locked, sqlitestore.ErrLocked) {
			err = usage("%s cannot be restored into: %w", dir, locked)
		}
		return nil, err
	}
	lock, err := sqlitestore.Lock(dir)
	if err != nil {
		return nil, usage("%s cannot be restored into: %w", dir, err)
	}
	return lock.Release, nil
}

// Read reads the list of a copy.
func Read(from string) (l List, err error) {
	text, err := os.ReadFile(filepath.Join(from, listFile))
	if err != nil {
		return List{}, usage("%s is no whole backup: %w", from, err)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return List{}, usage("%s: %s cannot be read: %w", from, listFile, err)
	}
	if l.Format > format {
		return List{}, usage("%s was made by a newer release, and this one cannot read its backups: restore with that release", from)
	}
	for name := range l.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
			return List{}, usage("%s: %s names a file outside the backup: %q", from, listFile, name)
		}
	}
	if l.Files[embedded.DataFile] == "" {
		return List{}, usage("%s: %s names no %s", from, listFile, embedded.DataFile)
	}
	return l, nil
}

// bring copies a file of the list, and compares it.
func (l *List) bring(from, to, name, as string) error {
	target := filepath.Join(to, filepath.FromSlash(as))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(from, filepath.FromSlash(name)), target); err != nil {
		return err
	}
	sum, _, err := sumOf(target)
	if err == nil && sum != l.Files[name] {
		err = fmt.Errorf("%s of %s differs from its entry in the list: it was changed since the backup", name, from)
	}
	return err
}

// mustBeEmpty refuses a folder that has any file besides the lock file of an engine that has ended.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usage("%w", err)
	}
	for _, e := range entries {
		if e.Name() != embedded.LockFile {
			return usage("%s is not empty (%s is in it), and no file is overwritten: name a folder that is not there", dir, e.Name())
		}
	}
	return nil
}

func sumOf(file string) (sum string, n int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// copyFile copies a file to a new one that only its owner may read, and flushes it and its folder.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func write(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
