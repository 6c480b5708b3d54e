// Package sqlitetx submits a job in an SQLite transaction of the caller's own, beside their own rows: the order and
// its job are there together, or not at all. It is for tables that live in the same file as Makegood's
// (DIR/makegood.db of `makegood dev --data DIR`); the caller brings their own SQLite driver.
//
//	tx, err := db.BeginTx(ctx, nil)
//	_, err = tx.ExecContext(ctx, `INSERT INTO orders(id, total) VALUES(?, ?)`, order.ID, order.Total)
//	err = sqlitetx.Submit(ctx, tx, makegood.Submission{Workflow: "order", ID: order.ID, Input: order})
//	err = tx.Commit()
//
// No message is sent: the engine on that file finds the job within two seconds of the commit. Keep the transaction
// short; the engine cannot write meanwhile.
package sqlitetx

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Submit stores the intent of a job in tx. The same ID with the same workflow and input is the same job, and success.
// ID must be given. ReplyTo must be empty: only the engine knows the registered names. Errors: *api.InvalidError,
// *api.MismatchError; after any error no part of the job is stored, and tx is the caller's to roll back.
func Submit(ctx context.Context, tx *sql.Tx, s makegood.Submission) error {
	input, err := json.Marshal(s.Input)
	if err != nil {
		return &api.InvalidError{Message: fmt.Sprintf("the input is not JSON: %v", err)}
	}
	definition, err := sqlitestore.DefinitionIn(ctx, tx, s.Workflow)
	if errors.Is(err, store.ErrNotFound) {
		return &api.InvalidError{Message: fmt.Sprintf("there is no workflow %q in this file", s.Workflow)}
	}
	if err != nil {
		return err
	}
	compiled, err := workflowfile.Load(definition)
	if err != nil {
		return fmt.Errorf("definition of workflow %s: %w", s.Workflow, err)
	}
	submission := scheduler.Submission{ID: s.ID, Input: input, StartAt: s.StartAt, ReplyTo: s.ReplyTo, Tenant: s.Tenant, Labels: s.Labels, Priority: s.Priority, Traceparent: telemetry.Under(ctx, s.Traceparent)}
	job, payloads, err := scheduler.Intent(compiled, submission, nil, time.Now())
	if errors.Is(err, scheduler.ErrInvalid) {
		return invalid(err)
	}
	if err != nil {
		return err
	}
	err = sqlitestore.CreateIn(ctx, tx, job, payloads)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	have, err := sqlitestore.LoadIn(ctx, tx, s.ID)
	if err == nil && have.InputHash != job.InputHash {
		return &api.MismatchError{Job: s.ID, Have: have.InputHash, Got: job.InputHash}
	}
	return err
}

// invalid returns the error of package client for a submission that the Scheduler refuses.
func invalid(err error) error {
	wrong := &api.InvalidError{Message: err.Error()}
	if misfit := (*scheduler.MisfitError)(nil); errors.As(err, &misfit) {
		wrong.Misfits = misfit.Misfits
	}
	return wrong
}
