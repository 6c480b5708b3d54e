package embedded

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/filepayload"
	"github.com/makegood-dev/makegood/internal/payload/mempayload"
	"github.com/makegood-dev/makegood/internal/store"
)

// collectEvery is how often the engine looks for large payloads without a reference.
const collectEvery = time.Hour

// large keeps the large payloads of an engine: in a folder beside its file, or with it in memory.
type large interface {
	payload.Store
	// Drop takes what a job had that was written and kept last before a time.
	Drop(ctx context.Context, job string, before time.Time) error
	// Collect removes some payloads that belong to no job and were neither written nor kept for limits.KeepPayload.
	Collect(ctx context.Context, known func(ctx context.Context, job string) (bool, error)) (more bool, err error)
	Close()
}

var (
	_ large = (*filepayload.Store)(nil)
	_ large = (*mempayload.Store)(nil)
)

func (e *Engine) openLarge() error {
	if e.config.Dir == "" {
		e.large = &mempayload.Store{}
		return nil
	}
	files, err := filepayload.Open(filepath.Join(e.config.Dir, filepayload.Folder))
	if err != nil {
		return err
	}
	e.large = files
	return nil
}

func (e *Engine) closeLarge() {
	if e.large != nil {
		e.large.Close()
	}
}

// WritePayload stores a large payload, for a job that is there or will be submitted; see payload.Store.
func (e *Engine) WritePayload(ctx context.Context, job, mediaType string, from io.Reader) (makegood.Payload, error) {
	written, err := e.large.Write(ctx, payload.Place{Job: job}, from)
	if err != nil {
		return makegood.Payload{}, err
	}
	return makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes, Type: mediaType}, nil
}

// OpenPayload reads a large payload of a job; see payload.Store.
func (e *Engine) OpenPayload(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	return e.large.Open(ctx, job, p, offset, n)
}

// dropLarge removes the payloads of jobs that were just deleted, which ended at finished or before. Younger payloads
// belong to a later job of the same id. Payloads that cannot be removed now are unreferenced, and collected later.
func (e *Engine) dropLarge(ctx context.Context, jobs []string, finished time.Time) {
	for _, id := range jobs {
		if err := e.large.Drop(ctx, id, finished); err != nil {
			e.config.Logger.WarnContext(ctx, "payloads of a job that was deleted stay for now", "job", id, "error", err)
		}
	}
}

// collect removes unreferenced large payloads from time to time.
func (e *Engine) collect(ctx context.Context) error {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		for more, err := true, error(nil); more && ctx.Err() == nil; {
			if more, err = e.large.Collect(ctx, e.has); err != nil && ctx.Err() == nil {
				e.config.Logger.WarnContext(ctx, "payloads that no job refers to stay for now", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// has reports whether there is a job of an id. One that cannot be read is there.
func (e *Engine) has(ctx context.Context, id string) (bool, error) {
	_, err := e.store.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err == nil, errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrNewer):
		return true, nil
	default:
		return false, err
	}
}
