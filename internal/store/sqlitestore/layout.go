package sqlitestore

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// schemaVersion is the layout of the file that this release writes. It opens those of older releases from
	// firstVersion on, and those of newer ones that say so.
	schemaVersion = 8
	// firstVersion is the first that goes on in later releases: jobs are stored as internal/store/jobformat has them.
	firstVersion = 4
	// readableFrom is the oldest release, by its schemaVersion, that works on a file of this layout: raised only by a
	// change that an older program would fail on, or undo.
	readableFrom = 4
)

// migration is what makes a file of the version before one of this version.
type migration struct {
	version    int64
	statements []string
}

// layout is what a program knows of files. There is one; tests make those of other releases.
type layout struct {
	version, readableFrom int64
	migrations            []migration
}

// ourLayout is that of this release. Its migrations lead from firstVersion to schemaVersion, a version each. One that
// only adds (a table, or a column with a default) leaves readableFrom as it is, since the statements of this package
// name their columns.
func ourLayout() layout {
	return layout{version: schemaVersion, readableFrom: readableFrom, migrations: []migration{
		{version: 5, statements: []string{
			`CREATE TABLE schedules(
				name        TEXT PRIMARY KEY,
				rev         INTEGER NOT NULL,
				complete_by INTEGER,
				data        BLOB NOT NULL) STRICT`,
			`CREATE INDEX schedules_due ON schedules(complete_by, name) WHERE complete_by IS NOT NULL`,
			`ALTER TABLE claims ADD COLUMN progress TEXT NOT NULL DEFAULT ''`,
			`ALTER TABLE claims ADD COLUMN progress_at INTEGER`,
		}},
		{version: 6, statements: slices.Concat(listIndexes, []string{
			`CREATE TABLE holds(
				one         INTEGER PRIMARY KEY CHECK (one = 1),
				rev         INTEGER NOT NULL,
				complete_by INTEGER,
				data        BLOB NOT NULL) STRICT`,
			`ALTER TABLE jobs ADD COLUMN held_by TEXT`,
			`CREATE INDEX jobs_held ON jobs(held_by) WHERE held_by IS NOT NULL`,
			`ALTER TABLE claims ADD COLUMN beside INTEGER NOT NULL DEFAULT 0`,
			`CREATE TABLE quarantined(
				id    INTEGER PRIMARY KEY AUTOINCREMENT,
				at    INTEGER NOT NULL,
				bytes INTEGER NOT NULL,
				body  TEXT NOT NULL) STRICT`,
			`CREATE INDEX quarantined_bytes ON quarantined(bytes)`,
		})},
		{version: 7, statements: []string{
			`ALTER TABLE jobs ADD COLUMN warned INTEGER`,
			`CREATE INDEX jobs_warned ON jobs(warned) WHERE warned IS NOT NULL`,
		}},
		{version: 8, statements: []string{
			`CREATE TABLE permits(agent TEXT NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(agent, n)) STRICT, WITHOUT ROWID`,
			`CREATE TABLE tickets(agent TEXT NOT NULL, rank TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY(agent, rank)) STRICT, WITHOUT ROWID`,
		}},
	}}
}

// prepare makes the tables in a new file, brings an older one to this layout, and refuses a file that is not ours or
// cannot be opened, in one transaction.
func (l layout) prepare(c *conn, logger *slog.Logger) error {
	if err := begin(c, beginTries, new(atomic.Int64)); err != nil {
		return err
	}
	from, err := l.bring(c)
	if err != nil {
		// The reason to report is the first one; a failed rollback leaves no change behind either.
		_, _ = c.exec("ROLLBACK")
		return err
	}
	if _, err = c.exec("COMMIT"); err != nil {
		return err
	}
	switch {
	case from > l.version:
		logger.Info("the store was written by a newer release, which allows this one to use it", "schema", from, "ours", l.version)
	case from > 0 && from < l.version:
		logger.Info("the store was brought to the layout of this release", "from", from, "schema", l.version)
	}
	return nil
}

// bring returns the version that the file had; 0 for a new one.
func (l layout) bring(c *conn) (from int64, err error) {
	row, err := c.one(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return 0, err
	}
	if asInt(row[0]) == 0 {
		return 0, l.write(c, slices.Concat(schema, l.statements(firstVersion)))
	}
	if from, err = l.check(c); err != nil || from >= l.version {
		return from, err
	}
	return from, l.write(c, l.statements(from))
}

// statements are those that lead from a version to that of the layout.
func (l layout) statements(from int64) []string {
	var all []string
	for _, m := range l.migrations {
		if m.version > from {
			all = append(all, m.statements...)
		}
	}
	return all
}

// write runs statements and notes what the file is now.
func (l layout) write(c *conn, statements []string) error {
	for _, sql := range statements {
		if _, err := c.exec(sql); err != nil {
			return fmt.Errorf("%s: %w", strings.Fields(sql)[:3], err)
		}
	}
	_, err := c.exec(`INSERT INTO meta(key, value) VALUES('schema', ?), ('readable_from', ?)
		ON CONFLICT DO UPDATE SET value = excluded.value`, l.version, l.readableFrom)
	return err
}

// check returns the version of a file that this program may open, older ones included.
func (l layout) check(c *conn) (version int64, err error) {
	row, err := c.one(`SELECT count(*) FROM sqlite_schema WHERE name = 'meta'`)
	if err != nil {
		return 0, err
	}
	if asInt(row[0]) == 0 {
		return 0, fmt.Errorf("this SQLite file is not a store of Makegood")
	}
	if version, err = meta(c, "schema"); err != nil {
		return 0, err
	}
	from, err := meta(c, "readable_from")
	switch {
	case err != nil:
		return 0, err
	case version < firstVersion:
		return 0, fmt.Errorf("the file has schema version %d, of before jobs were stored so that later releases can read them, and this program knows version %d: let the program that wrote it finish its jobs, then begin with a new folder", version, l.version)
	case version > l.version && (from == 0 || from > l.version):
		return 0, fmt.Errorf("the file has schema version %d, for programs that know version %d, and this program knows version %d: use the program that wrote it", version, max(from, version), l.version)
	}
	return version, nil
}

// meta reads a number of the file itself; 0 if it is not there.
func meta(c *conn, key string) (int64, error) {
	row, err := c.one(`SELECT value FROM meta WHERE key = ?`, key)
	if err != nil || row == nil {
		return 0, err
	}
	return asInt(row[0]), nil
}

// readable refuses a file that this program cannot read as it is. A reader makes no writes, so it does not bring an
// older file to its layout.
func (l layout) readable(c *conn) error {
	version, err := l.check(c)
	if err == nil && version < l.version {
		return fmt.Errorf("the file has schema version %d, this program knows version %d: start it once on this folder, and it brings the file there", version, l.version)
	}
	return err
}
