package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// schemaVersion is the layout of the file that this code reads and writes, and the only one.
const schemaVersion = 3

// schema has one row a job. It keeps its rows by number, not by id: a row of a job is larger than
// what a page of an index holds, and saves would write overflow pages. The columns before
// data are what the conditions of a write look at; data is the rest of the job, packed.
//
// jobs_unfinished is for a restart: among a million finished jobs it finds the ten that are not.
// jobs_finished is for expiry: only what is at its end and told has finished_at.
// jobs_workflow is for lists; no save writes it. One on process_state would cost every save a seventh.
var schema = []string{
	`CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE TABLE jobs(
		row           INTEGER PRIMARY KEY,
		id            TEXT NOT NULL UNIQUE,
		rev           INTEGER NOT NULL,
		process_state TEXT NOT NULL,
		complete_by   INTEGER,
		failure_count INTEGER NOT NULL,
		locked_by     TEXT NOT NULL,
		workflow      TEXT NOT NULL,
		created_at    INTEGER,
		finished_at   INTEGER,
		parked        TEXT,
		data          BLOB NOT NULL) STRICT`,
	`CREATE INDEX jobs_due ON jobs(complete_by, id) WHERE complete_by IS NOT NULL`,
	`CREATE INDEX jobs_unfinished ON jobs(id, complete_by) WHERE complete_by IS NOT NULL`,
	`CREATE INDEX jobs_finished ON jobs(finished_at) WHERE finished_at IS NOT NULL`,
	`CREATE INDEX jobs_workflow ON jobs(workflow)`,
	`CREATE TABLE claims(
		job         TEXT NOT NULL,
		birth       TEXT NOT NULL,
		step        TEXT NOT NULL,
		agent       TEXT NOT NULL,
		attempt     INTEGER NOT NULL,
		locked_by   TEXT NOT NULL,
		started_at  INTEGER,
		complete_by INTEGER,
		closed      TEXT NOT NULL,
		ends        INTEGER,
		expires_at  INTEGER NOT NULL,
		PRIMARY KEY(job, birth, step, agent)) STRICT, WITHOUT ROWID`,
	`CREATE TABLE payloads(job TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY(job, key)) STRICT`,
	`CREATE TABLE definitions(hash TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT`,
	`CREATE TABLE current(name TEXT PRIMARY KEY, hash TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	fmt.Sprintf(`INSERT INTO meta(key, value) VALUES('schema', %d), ('incarnation', 0), ('healed', 0)`, schemaVersion),
}

// prepareSchema makes the tables in a new file, and refuses a file that is not ours or not of this version.
func prepareSchema(c *conn) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := makeSchema(c)
	if err != nil {
		// The reason to report is the first one; a rollback that fails leaves nothing behind either.
		_, _ = c.exec("ROLLBACK")
		return err
	}
	_, err = c.exec("COMMIT")
	return err
}

func makeSchema(c *conn) error {
	row := make([]driver.Value, 1)
	if _, err := c.one(`SELECT count(*) FROM sqlite_schema`, row); err != nil {
		return err
	}
	if asInt(row[0]) > 0 {
		return checkSchema(c)
	}
	for _, sql := range schema {
		if _, err := c.exec(sql); err != nil {
			return fmt.Errorf("%s: %w", strings.Fields(sql)[:3], err)
		}
	}
	return nil
}

func checkSchema(c *conn) error {
	row := make([]driver.Value, 1)
	found, err := c.one(`SELECT count(*) FROM sqlite_schema WHERE name = 'meta'`, row)
	if err != nil {
		return err
	}
	if !found || asInt(row[0]) == 0 {
		return fmt.Errorf("this SQLite file is not a store of Makegood")
	}
	if found, err = c.one(`SELECT value FROM meta WHERE key = 'schema'`, row); err != nil {
		return err
	}
	switch version := asInt(row[0]); {
	case !found || version > schemaVersion:
		return fmt.Errorf("the file has schema version %d, this program knows version %d: use the program that wrote it", version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("the file has schema version %d, of before claims had items of their own, and this program knows version %d: let the program that wrote it finish its jobs, then begin with a new folder", version, schemaVersion)
	}
	return nil
}
