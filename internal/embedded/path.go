package embedded

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// DataFile is the name of the store in its folder, and LockFile the name of the file beside it that names the process
// which holds the folder.
const (
	DataFile = "makegood.db"
	LockFile = sqlitestore.LockFile
)

// openSQLite is Config.OpenStore with SQLite.
func openSQLite(ctx context.Context, dir string, logger *slog.Logger) (store.Embedded, store.FolderLock, error) {
	if dir == "" {
		file, err := sqlitestore.Open(ctx, sqlitestore.Options{Logger: logger})
		return orNone(file, err), nil, err
	}
	lock, err := sqlitestore.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	file, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: pathIn(dir), Logger: logger})
	return orNone(file, err), lock, err
}

// orNone returns no store beside an error.
func orNone(file *sqlitestore.Store, err error) store.Embedded {
	if err != nil {
		return nil
	}
	return file
}

// pathIn is the path of the store in a folder, absolute: agents may change the working directory. Empty: in memory.
func pathIn(dir string) string {
	if dir == "" {
		return ""
	}
	path := filepath.Join(dir, DataFile)
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
