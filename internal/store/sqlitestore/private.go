package sqlitestore

import (
	"errors"
	"io/fs"
	"os"
)

// The files have the content of jobs, so only their owner may read them, whatever the umask says.
const (
	privateFolder = 0o700
	privateFile   = 0o600
)

// makeFolder makes a folder that only its owner may enter. An existing folder stays as it is: it may have other uses,
// and the files in it are private by themselves.
func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, privateFolder); err != nil {
		return err
	}
	return os.Chmod(dir, privateFolder)
}

// makeFile makes the file of a store before SQLite does, private, and reports whether there was none.
func makeFile(path string) (made bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// makePrivate makes the file of a store private, with the log and its index, to which SQLite gives the mode of the file
// when it makes them later. It opens none of these files: closing one would take away the locks that others in this
// process have on it.
func makePrivate(path string) error {
	var errs []error
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, privateFile); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
