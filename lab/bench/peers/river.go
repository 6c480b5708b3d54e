package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A job of River has no steps, outside its paid edition. So each step is a job of River's, which inserts the next
// one in the transaction that completes it.
type riverStep struct {
	input
	Job  int `json:"job"`
	Left int `json:"left"`
}

func (riverStep) Kind() string { return "step" }

type riverWorker struct {
	river.WorkerDefaults[riverStep]
	engine *riverEngine
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverStep]) error {
	if _, err := step(); err != nil {
		return err
	}
	tx, err := w.engine.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if job.Args.Left > 1 {
		next := job.Args
		next.Left--
		if _, err := w.engine.client.InsertTx(ctx, tx, next, nil); err != nil {
			return err
		}
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if job.Args.Left == 1 {
		w.engine.ended(job.Args.Job)
	}
	return nil
}

type riverEngine struct {
	server *postgres
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	mu     sync.Mutex
	waits  map[int]chan struct{}
}

func openRiver(ctx context.Context, p place) (engine, error) {
	pg, err := startPostgres(ctx, p)
	if err != nil {
		return nil, err
	}
	e := &riverEngine{server: pg, waits: map[int]chan struct{}{}}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(err, pg.Close())
	}
	return e, nil
}

func (e *riverEngine) open(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(e.server.url("postgres"))
	if err != nil {
		return err
	}
	config.MaxConns = callers
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	driver := riverpgxv5.New(e.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{engine: e})
	e.client, err = river.NewClient(driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		// The shortest that it takes: by default it fetches ten times a second at most.
		FetchCooldown: time.Millisecond, FetchPollInterval: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return e.client.Start(ctx)
}

func (e *riverEngine) Submit(ctx context.Context, job, steps int) (func() error, error) {
	done := make(chan struct{})
	e.mu.Lock()
	e.waits[job] = done
	e.mu.Unlock()
	if _, err := e.client.Insert(ctx, riverStep{input{"a-17", 3, steps}, job, steps}, nil); err != nil {
		return nil, err
	}
	return func() error {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// ended reports that the last step of a job is committed.
func (e *riverEngine) ended(job int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if done, waits := e.waits[job]; waits {
		close(done)
		delete(e.waits, job)
	}
}

func (e *riverEngine) Close() error {
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := e.client.Stop(stop)
	e.pool.Close()
	return errors.Join(err, e.server.Close())
}
