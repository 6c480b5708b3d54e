package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

type dbosEngine struct {
	dbos  dbos.Context
	close func() error
}

// openDBOSOnSQLite opens DBOS on a file whose every commit is flushed. By itself it would set synchronous to NORMAL,
// with which the last commits are lost with the power; the other settings are its own.
func openDBOSOnSQLite(ctx context.Context, p place) (engine, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.dir, "dbos.db")+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	return openDBOS(ctx, dbos.Config{SQLiteSystemDB: db}, db.Close)
}

func openDBOSOnPostgres(ctx context.Context, p place) (engine, error) {
	pg, err := startPostgres(ctx, p)
	if err != nil {
		return nil, err
	}
	return openDBOS(ctx, dbos.Config{DatabaseURL: pg.url("postgres")}, pg.Close)
}

func openDBOS(ctx context.Context, config dbos.Config, closeStore func() error) (engine, error) {
	config.AppName, config.Logger = "peer", slog.New(slog.DiscardHandler)
	c, err := dbos.NewContext(ctx, config)
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	dbos.RegisterWorkflow(c, dbosJob)
	if err := dbos.Launch(c); err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return &dbosEngine{c, closeStore}, nil
}

func dbosJob(ctx dbos.Context, in input) (string, error) {
	for range in.Steps {
		if _, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) { return step() }, dbos.WithStepName("step")); err != nil {
			return "", err
		}
	}
	return output, nil
}

func (e *dbosEngine) Submit(_ context.Context, job, steps int) (func() error, error) {
	handle, err := dbos.RunWorkflow(e.dbos, dbosJob, input{"a-17", 3, steps}, dbos.WithWorkflowID(fmt.Sprintf("job-%08d", job)))
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := handle.GetResult()
		return err
	}, nil
}

func (e *dbosEngine) Close() error {
	return errors.Join(dbos.Shutdown(e.dbos, 10*time.Second), e.close())
}
