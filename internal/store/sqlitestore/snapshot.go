package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// restoredRuns is how far Restored moves the number of the run on: past every run that the lost engine may have begun
// after the backup. So no number is ever given again, and an attempt of a lost run is never taken for one of a run
// after it.
const restoredRuns = 1_000_000

// Snapshot is what a copy of a store has.
type Snapshot struct {
	Jobs, Unfinished int64
	// Schema is the version of its layout.
	Schema int64
}

// Copy writes the store at from, as it is at one moment, into a new file, whether an engine works on it or not: an
// engine goes on meanwhile, and its log grows until the copy is done. The file is in one piece, and is checked: it is a
// store that this release reads, and SQLite finds no damage in it. to must not be there.
func Copy(ctx context.Context, from, to string) (Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return Snapshot{}, err
	}
	c, err := dial(from, true, "busy_timeout(5000)")
	if err != nil {
		return Snapshot{}, err
	}
	if made, err := makeFile(to); err != nil || !made {
		return Snapshot{}, errors.Join(fmt.Errorf("copy the store to %s: it cannot be made, or is there", to), err, c.close())
	}
	// SQLite writes into an empty file and keeps its mode, which lets only the owner read it.
	_, err = c.exec(`VACUUM INTO ?`, to)
	if err = errors.Join(err, c.close()); err != nil {
		return Snapshot{}, fmt.Errorf("copy the store to %s: %w", to, err)
	}
	return Check(ctx, to)
}

// Check reads all of a store that no engine works on, and returns a summary. The error describes the damage.
func Check(ctx context.Context, path string) (s Snapshot, err error) {
	r, err := OpenReader(ctx, path)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = r.read(ctx, func(c *conn) error {
		var wrong []string
		if err := c.query(`PRAGMA integrity_check(10)`, nil, func(row []driver.Value) error {
			if text := fmt.Sprint(row[0]); text != "ok" {
				wrong = append(wrong, text)
			}
			return nil
		}); err != nil {
			return err
		}
		if len(wrong) > 0 {
			return fmt.Errorf("SQLite finds it damaged: %s", strings.Join(wrong, "; "))
		}
		// The two ways to count read the table and its index, apart.
		counts, err := c.one(`SELECT (SELECT count(*) FROM jobs NOT INDEXED), (SELECT count(*) FROM jobs INDEXED BY jobs_workflow WHERE workflow >= ''), (SELECT count(*) FROM jobs WHERE complete_by IS NOT NULL)`)
		if err != nil {
			return err
		}
		if asInt(counts[0]) != asInt(counts[1]) {
			return fmt.Errorf("it has %d jobs, and %d in an index", asInt(counts[0]), asInt(counts[1]))
		}
		s.Jobs, s.Unfinished = asInt(counts[0]), asInt(counts[2])
		s.Schema, err = meta(c, "schema")
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("check %s: %w", path, err)
	}
	return s, nil
}

// Restored turns a copy, on which no engine works, into a store on which an engine may begin. That counts as a run far
// behind all that there were. The end of the copy's last run is forgotten, as that run may have begun attempts after
// the copy: they count as attempts with an unknown outcome.
func Restored(path string) error {
	c, err := dial(path, false, "busy_timeout(5000)", "journal_mode(DELETE)", "synchronous(FULL)")
	if err != nil {
		return err
	}
	run, err := meta(c, metaIncarnation)
	for _, set := range []struct {
		key   string
		value int64
	}{{metaIncarnation, run + restoredRuns}, {metaStopped, 0}, {metaProgressed, run + restoredRuns}, {metaDeaths, 0}, {"restored", time.Now().UnixMilli()}} {
		if err == nil {
			_, err = c.exec(`INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, set.key, set.value)
		}
	}
	return store.About(errors.Join(err, c.close()), "restore %s", path)
}
