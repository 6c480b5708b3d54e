package sqlitestore

// listIndexes are for lists; see wayTo. Only jobs_resting is on a column that saves write, and no save of a job that
// goes on writes an entry there. A trigger works for an older program, too.
var listIndexes = []string{
	`ALTER TABLE jobs ADD COLUMN tenant TEXT`,
	`CREATE INDEX jobs_tenant ON jobs(tenant) WHERE tenant IS NOT NULL`,
	`CREATE INDEX jobs_created ON jobs(created_at)`,
	`CREATE INDEX jobs_resting ON jobs(process_state) WHERE ` + resting,
	`CREATE TABLE labels(
		row   INTEGER NOT NULL,
		name  TEXT NOT NULL,
		value TEXT NOT NULL,
		PRIMARY KEY(row, name)) STRICT, WITHOUT ROWID`,
	`CREATE INDEX labels_value ON labels(name, value, row)`,
	`CREATE TRIGGER labels_gone AFTER DELETE ON jobs BEGIN DELETE FROM labels WHERE row = OLD.row; END`,
}

// schema has one row a job. It keeps its rows by number, not by id: a row of a job is larger than a page of an index
// holds, and saves would write overflow pages. The columns before data are for the conditions of writes; data is the
// rest of the job, packed.
//
// jobs_due is for sweeps and a restart, and jobs_unfinished for lists and counts: among a million finished jobs they
// find the ten that are not. jobs_finished is for expiry: only a job that is at its end and told has finished_at.
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
	`INSERT INTO meta(key, value) VALUES('incarnation', 0), ('healed', 0)`,
}
