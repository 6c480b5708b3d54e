package sqlitestore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// refusing makes SQLite refuse something about a table.
func refusing(what, table string) string {
	return `CREATE TRIGGER refused BEFORE ` + what + ` ON ` + table + ` BEGIN SELECT RAISE(ABORT, 'refused'); END`
}

// full is a store that has something of everything: a job that is held, one that has ended, and what belongs to them.
func full(t *testing.T) (s *sqlitestore.Store, path string) {
	t.Helper()
	s, path = openFile(t)
	ctx, now := t.Context(), time.Now()
	create(t, s, 1)
	ended := create(t, s, 2)
	check(t, s.PutPayload(ctx, ended.ID, "input", []byte(`1`)))
	seen := ended.CompleteBy
	ended.ProcessState, ended.FinishedAt, ended.CompleteBy = makegood.JobProcessed, now, time.Time{}
	check(t, s.Save(ctx, store.Change{Job: ended, Seen: seen}))
	check(t, s.PutPayload(ctx, benchJob(1).ID, "input", []byte(`1`)))
	check(t, s.PutDefinition(ctx, "order", "h", []byte(`{}`)))
	check(t, s.PutSchedule(ctx, store.Scheduled{Schedule: makegood.Schedule{Name: "tick"}, Key: now}))
	check(t, s.PutHolds(ctx, store.Held{}))
	check(t, s.PutPermit(ctx, "shop", job.Permit{}, aPermit()))
	check(t, s.Enter(ctx, "shop", aPermit().Ticket))
	check(t, s.Quarantine(ctx, "poison", now))
	check(t, s.Claim(ctx, slotOf(benchJob(1).ID), job.Claim{Attempt: 1, LockedBy: "a", StartedAt: now, CompleteBy: now.Add(time.Minute)}, now.Add(time.Hour)))
	return s, path
}

// Whatever SQLite says, it is told as an error, by every operation, and not as that there is nothing, or that it was
// done.
func TestEachOperationTellsWhatSQLiteRefuses(t *testing.T) {
	id, now := benchJob(1).ID, time.Now()
	slot := slotOf(id)
	claim := job.Claim{Attempt: 1, LockedBy: "a", StartedAt: now, CompleteBy: now.Add(time.Hour)}
	free, given := job.Permit{}, aPermit()
	held := func(j job.Job) job.Job {
		j.ProcessState, j.PausedAt, j.HeldBy = makegood.JobProcessing, now, "workflow order"
		return j
	}
	warned := func(j job.Job) job.Job {
		j.ExpectBy = now.Add(time.Hour)
		return j
	}
	labelled := func(j job.Job) job.Job {
		j.Labels = map[string]string{"a": "b"}
		return j
	}
	save := func(change func(job.Job) job.Job) func(context.Context, *sqlitestore.Store) error {
		return func(ctx context.Context, s *sqlitestore.Store) error {
			j, err := s.Load(ctx, id)
			if err != nil {
				return errors.New("it cannot be loaded")
			}
			return s.Save(ctx, store.Change{Job: change(j), Seen: j.CompleteBy})
		}
	}
	type operation = func(context.Context, *sqlitestore.Store) error
	for name, c := range map[string]struct {
		breaks string
		do     operation
	}{
		"claim": {`DROP TABLE claims`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Claim(ctx, slot, claim, now) }},
		"claim, not written": {refusing("INSERT", "claims"), func(ctx context.Context, s *sqlitestore.Store) error {
			return s.Claim(ctx, slotOf("other"), claim, now.Add(time.Hour))
		}},
		"heartbeat": {`DROP TABLE claims`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Heartbeat(ctx, slot, claim, now)
			return err
		}},
		"heartbeat, unwritten": {refusing("UPDATE", "claims"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Heartbeat(ctx, slot, claim, now.Add(2*time.Hour))
			return err
		}},
		"close": {`DROP TABLE claims`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Close(ctx, slot, store.Closing{Attempt: 1, Now: now, Until: now})
			return err
		}},
		"close, not written": {refusing("UPDATE", "claims"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Close(ctx, slot, store.Closing{Attempt: 2, Now: now, Until: now.Add(time.Hour)})
			return err
		}},
		"look": {`DROP TABLE claims`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Look(ctx, slot, 1, now, now)
			return err
		}},
		"overrule":              {`DROP TABLE claims`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Overrule(ctx, slot, 1, "a", now) }},
		"overrule, not written": {refusing("UPDATE", "claims"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Overrule(ctx, slot, 1, "a", now) }},
		"expire": {`DROP INDEX jobs_finished`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, _, err := s.Expire(ctx, now.Add(time.Hour))
			return err
		}},
		"expire, payloads": {refusing("DELETE", "payloads"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, _, err := s.Expire(ctx, now.Add(time.Hour))
			return err
		}},
		"expire, the job": {refusing("DELETE", "jobs"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, _, err := s.Expire(ctx, now.Add(time.Hour))
			return err
		}},
		"put holds":            {`DROP TABLE holds`, func(ctx context.Context, s *sqlitestore.Store) error { return s.PutHolds(ctx, store.Held{Rev: 1}) }},
		"put holds, unwritten": {refusing("UPDATE", "holds"), func(ctx context.Context, s *sqlitestore.Store) error { return s.PutHolds(ctx, store.Held{Rev: 1}) }},
		"holds":                {`DROP TABLE holds`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Holds(ctx, true); return err }},
		"held jobs":            {`DROP INDEX jobs_held`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.HeldJobs(ctx, "x", 1); return err }},
		"count held":           {`DROP INDEX jobs_held`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.CountHeld(ctx, "x", 1); return err }},
		"due holds": {`DROP TABLE holds`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Due(ctx, 2, now, store.Entry{}, 1)
			return err
		}},
		"due schedules": {`DROP INDEX schedules_due`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Due(ctx, 1, now, store.Entry{}, 1)
			return err
		}},
		"due jobs": {`DROP INDEX jobs_due`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Due(ctx, 0, now, store.Entry{}, 1)
			return err
		}},
		"due, no shard": {``, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Due(ctx, 3, now, store.Entry{}, 1)
			return err
		}},
		"next due":            {`DROP INDEX jobs_due`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.NextDue(ctx, now); return err }},
		"next due, schedules": {`DROP INDEX schedules_due`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.NextDue(ctx, now); return err }},
		"put permit":          {`DROP TABLE permits`, func(ctx context.Context, s *sqlitestore.Store) error { return s.PutPermit(ctx, "pay", free, given) }},
		"put permit, unput": {refusing("INSERT", "permits"), func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutPermit(ctx, "pay", free, given)
		}},
		"put permit, not freed": {refusing("DELETE", "permits"), func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutPermit(ctx, "shop", given, free)
		}},
		"enter":         {refusing("INSERT", "tickets"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Enter(ctx, "shop", given.Ticket) }},
		"leave":         {refusing("DELETE", "tickets"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Leave(ctx, "shop", given.Ticket) }},
		"gate, permits": {`DROP TABLE permits`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Gate(ctx, "shop", 1); return err }},
		"gate, tickets": {`DROP TABLE tickets`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Gate(ctx, "shop", 1); return err }},
		"count waiting": {`DROP TABLE tickets`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.CountWaiting(ctx, "shop", 1)
			return err
		}},
		"incarnation": {`DROP TABLE meta`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.NextIncarnation(ctx, now)
			return err
		}},
		"incarnation, kept": {refusing("INSERT", "meta"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.NextIncarnation(ctx, now)
			return err
		}},
		"progressed":           {`DROP TABLE meta`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Progressed(ctx) }},
		"stopped, not kept":    {refusing("INSERT", "meta"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Stopped(ctx) }},
		"create":               {refusing("INSERT", "jobs"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Create(ctx, benchJob(9)) }},
		"create, unread":       {`DROP TABLE jobs`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Create(ctx, benchJob(9)) }},
		"create, its labels":   {`DROP TABLE labels`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Create(ctx, labelled(benchJob(9))) }},
		"create, that is held": {refusing("UPDATE OF held_by", "jobs"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Create(ctx, held(benchJob(9))) }},
		"create, warned of":    {refusing("UPDATE OF warned", "jobs"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Create(ctx, warned(benchJob(9))) }},
		"save, held":           {refusing("UPDATE OF held_by", "jobs"), save(held)},
		"save, warned of":      {refusing("UPDATE OF warned", "jobs"), save(warned)},
		"load":                 {`DROP TABLE jobs`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Load(ctx, "other"); return err }},
		"each": {`DROP TABLE jobs`, func(ctx context.Context, s *sqlitestore.Store) error {
			return s.Each(ctx, func(job.Job) error { return nil })
		}},
		"unfinished": {`DROP INDEX jobs_due`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Unfinished(ctx, store.Entry{}, 1)
			return err
		}},
		"park": {`DROP TABLE jobs`, func(ctx context.Context, s *sqlitestore.Store) error { return s.Park(ctx, id, now, "why", now) }},
		"park, not written": {refusing("UPDATE", "jobs"), func(ctx context.Context, s *sqlitestore.Store) error {
			j, err := s.Load(ctx, id)
			if err != nil {
				return nil
			}
			return s.Park(ctx, id, j.CompleteBy, "why", now)
		}},
		"put payload": {`DROP TABLE payloads`, func(ctx context.Context, s *sqlitestore.Store) error { return s.PutPayload(ctx, id, "k", nil) }},
		"payload": {`DROP TABLE payloads`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.Payload(ctx, id, "input")
			return err
		}},
		"drop pages": {`DROP TABLE payloads`, func(ctx context.Context, s *sqlitestore.Store) error { return s.DropPages(ctx, id, 0, 9) }},
		"history":    {`DROP TABLE payloads`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.HistoryPages(ctx, id); return err }},
		"put definition": {`DROP TABLE definitions`, func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutDefinition(ctx, "order", "i", []byte(`{}`))
		}},
		"put definition, named": {`DROP TABLE current`, func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutDefinition(ctx, "order", "i", []byte(`{}`))
		}},
		"mend definition": {`DROP TABLE definitions`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.MendDefinition(ctx, "h", []byte(`[]`))
			return err
		}},
		"definition": {`DROP TABLE definitions`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Definition(ctx, "h"); return err }},
		"current definition": {`DROP TABLE current`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.CurrentDefinition(ctx, "order")
			return err
		}},
		"current definitions": {`DROP TABLE current`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.CurrentDefinitions(ctx); return err }},
		"quarantine":          {refusing("INSERT", "quarantined"), func(ctx context.Context, s *sqlitestore.Store) error { return s.Quarantine(ctx, "x", now) }},
		"drop quarantined":    {refusing("DELETE", "quarantined"), func(ctx context.Context, s *sqlitestore.Store) error { return s.DropQuarantined(ctx, 1) }},
		"expire quarantined": {refusing("DELETE", "quarantined"), func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.ExpireQuarantined(ctx, now.Add(time.Hour))
			return err
		}},
		"quarantined":          {`DROP TABLE quarantined`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Quarantined(ctx, 0, 1); return err }},
		"quarantined, dropped": {`DROP TABLE meta`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Quarantined(ctx, 0, 1); return err }},
		"quarantined message": {`DROP TABLE quarantined`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.QuarantinedMessage(ctx, 1)
			return err
		}},
		"put schedule": {`DROP TABLE schedules`, func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutSchedule(ctx, store.Scheduled{Schedule: makegood.Schedule{Name: "tock"}})
		}},
		"put schedule, unput": {refusing("INSERT", "schedules"), func(ctx context.Context, s *sqlitestore.Store) error {
			return s.PutSchedule(ctx, store.Scheduled{Schedule: makegood.Schedule{Name: "tock"}})
		}},
		"remove schedule":    {`DROP TABLE schedules`, func(ctx context.Context, s *sqlitestore.Store) error { return s.RemoveSchedule(ctx, "tick", 1) }},
		"remove, not done":   {refusing("DELETE", "schedules"), func(ctx context.Context, s *sqlitestore.Store) error { return s.RemoveSchedule(ctx, "tick", 1) }},
		"schedule":           {`DROP TABLE schedules`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Schedule(ctx, "tick"); return err }},
		"schedules":          {`DROP TABLE schedules`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.ListSchedules(ctx); return err }},
		"totals":             {`DROP INDEX jobs_resting`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Totals(ctx); return err }},
		"totals, unfinished": {`DROP INDEX jobs_unfinished`, func(ctx context.Context, s *sqlitestore.Store) error { _, err := s.Totals(ctx); return err }},
		"audit": {`DROP TABLE jobs`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, _, err := s.AuditPage(ctx, "", 1)
			return err
		}},
		"audit of schedules": {`DROP TABLE schedules`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, _, err := s.AuditPage(ctx, "/", 1)
			return err
		}},
		"list": {`DROP INDEX jobs_workflow`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.ListJobs(ctx, store.Filter{Workflow: "order"}, "", 9)
			return err
		}},
		"list, the warned": {`DROP INDEX jobs_warned`, func(ctx context.Context, s *sqlitestore.Store) error {
			_, err := s.ListJobs(ctx, store.Filter{LateWithin: time.Hour, Now: now}, "", 9)
			return err
		}},
		"list, of an agent": {`DROP TABLE definitions`, func(ctx context.Context, s *sqlitestore.Store) error {
			j := benchJob(9)
			j.Steps[0].Forward.State = job.Dispatched
			if err := s.Create(ctx, j); err != nil {
				return nil
			}
			_, err := s.ListJobs(ctx, store.Filter{Agent: "a"}, "", 9)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := full(t)
			if c.breaks != "" {
				execSQL(t, path, c.breaks)
			}
			err := c.do(t.Context(), s)
			for _, none := range []error{store.ErrNotFound, store.ErrConflict, store.ErrTaken, store.ErrWithdrawn, store.ErrExists, store.ErrFailed} {
				if err == nil || errors.Is(err, none) {
					t.Fatalf("got %v, want what SQLite says", err)
				}
			}
		})
	}
}

// In a transaction of the caller's it is the same.
func TestWhatIsDoneInATransactionTellsWhatSQLiteRefuses(t *testing.T) {
	labelled := benchJob(9)
	labelled.Labels = map[string]string{"a": "b"}
	input := map[string]json.RawMessage{"input": json.RawMessage(`1`)}
	for name, c := range map[string]struct {
		breaks, says string
		do           func(context.Context, *sql.Tx) error
	}{
		"create":           {refusing("INSERT", "jobs"), "create job ", func(ctx context.Context, tx *sql.Tx) error { return sqlitestore.CreateIn(ctx, tx, benchJob(9), nil) }},
		"create, labels":   {`DROP TABLE labels`, "label job ", func(ctx context.Context, tx *sql.Tx) error { return sqlitestore.CreateIn(ctx, tx, labelled, nil) }},
		"create, payloads": {`DROP TABLE payloads`, "put payload input of job ", func(ctx context.Context, tx *sql.Tx) error { return sqlitestore.CreateIn(ctx, tx, benchJob(9), input) }},
		"definition": {`DROP TABLE current`, "current definition of workflow ", func(ctx context.Context, tx *sql.Tx) error {
			_, err := sqlitestore.DefinitionIn(ctx, tx, "order")
			return err
		}},
		"load": {`DROP TABLE jobs`, "load job ", func(ctx context.Context, tx *sql.Tx) error {
			_, err := sqlitestore.LoadIn(ctx, tx, benchJob(1).ID)
			return err
		}},
		"holds": {`DROP TABLE claims`, "claim of ", func(ctx context.Context, tx *sql.Tx) error {
			_, err := sqlitestore.HoldsIn(ctx, tx, slotOf(benchJob(1).ID), 1, "a")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, path := full(t)
			execSQL(t, path, c.breaks)
			db, err := sql.Open("sqlite", path)
			check(t, err)
			defer db.Close()
			tx, err := db.BeginTx(t.Context(), nil)
			check(t, err)
			defer func() { _ = tx.Rollback() }()
			if err := c.do(t.Context(), tx); err == nil || !strings.HasPrefix(err.Error(), c.says) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) {
				t.Errorf("got %v, want an error that begins with %q", err, c.says)
			}
		})
	}
}

// A job, a definition and a claim are found in a transaction of the caller's as they are; one that is not there is not
// found.
func TestATransactionOfTheCallersSeesWhatIsThere(t *testing.T) {
	_, path := full(t)
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	defer func() { _ = tx.Rollback() }()
	ctx, id := t.Context(), benchJob(1).ID
	j := benchJob(9)
	j.Labels, j.Tenant = map[string]string{"a": "b"}, "acme"
	check(t, sqlitestore.CreateIn(ctx, tx, j, map[string]json.RawMessage{"input": json.RawMessage(`1`)}))
	if got, err := sqlitestore.LoadIn(ctx, tx, j.ID); err != nil || got.ID != j.ID || got.Tenant != "acme" || len(got.Steps) != len(j.Steps) {
		t.Errorf("got %+v, %v, want the job that was stored", got, err)
	}
	var labels, payloads int
	check(t, tx.QueryRow(`SELECT (SELECT count(*) FROM labels WHERE name = 'a' AND value = 'b'), (SELECT count(*) FROM payloads WHERE job = ? AND key = 'input')`, j.ID).Scan(&labels, &payloads))
	if labels != 1 || payloads != 1 {
		t.Errorf("got %d labels and %d payloads, want one each", labels, payloads)
	}
	if body, err := sqlitestore.DefinitionIn(ctx, tx, "order"); err != nil || string(body) != `{}` {
		t.Errorf("got the definition %s, %v", body, err)
	}
	if _, err := sqlitestore.DefinitionIn(ctx, tx, "other"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a workflow that is not there: got %v", err)
	}
	if _, err := sqlitestore.LoadIn(ctx, tx, "other"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a job that is not there: got %v", err)
	}
	for name, c := range map[string]struct {
		attempt int
		by      string
		want    bool
	}{"held": {1, "a", true}, "another attempt": {2, "a", false}, "another holder": {1, "b", false}} {
		if got, err := sqlitestore.HoldsIn(ctx, tx, slotOf(id), c.attempt, c.by); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// A database is a store where it has all three tables, and one that cannot be read is an error.
func TestADatabaseIsAStoreOrNot(t *testing.T) {
	_, path := full(t)
	db, err := sql.Open("sqlite", path)
	check(t, err)
	if is, err := sqlitestore.Here(t.Context(), db); err != nil || !is {
		t.Errorf("got %v, %v, want a store", is, err)
	}
	execSQL(t, path, `DROP TABLE claims`)
	if is, err := sqlitestore.Here(t.Context(), db); err != nil || is {
		t.Errorf("without its claims: got %v, %v, want none", is, err)
	}
	check(t, db.Close())
	if is, err := sqlitestore.Here(t.Context(), db); err == nil || is {
		t.Errorf("closed: got %v, %v, want an error", is, err)
	}
}
