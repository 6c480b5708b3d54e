package sqlitestore

import (
	"context"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// loopWithin is how soon after its start a run dies that may be one of a loop.
const loopWithin = 10 * time.Minute

// The keys of meta about runs: the number of the last, that of the last that was told to stop, and of the last that did
// work; when the last began; and the loop of deaths that it is in, if any.
const (
	metaIncarnation = "incarnation"
	metaStopped     = "stopped"
	metaProgressed  = "progressed"
	metaStarted     = "started"
	metaDeaths      = "deaths"
	metaDeathsSince = "deaths_since"
)

// NextIncarnation counts the runs of the engine on this store. The number is durable when it is returned.
func (s *Store) NextIncarnation(ctx context.Context, now time.Time) (store.Incarnation, error) {
	var next store.Incarnation
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		g.durable = true
		known := map[string]int64{}
		for _, key := range []string{metaIncarnation, metaStopped, metaProgressed, metaStarted, metaDeaths, metaDeathsSince} {
			if known[key], err = meta(g.conn, key); err != nil {
				return nil, err
			}
		}
		last, started := known[metaIncarnation], time.UnixMilli(known[metaStarted]).UTC()
		next = store.Incarnation{Number: int(last) + 1, Stopped: last > 0 && known[metaStopped] == last}
		deaths, since := int64(0), int64(0)
		if !next.Stopped && known[metaProgressed] != last && now.Sub(started) < loopWithin {
			deaths, since = known[metaDeaths]+1, known[metaDeathsSince]
			if deaths == 1 {
				since = known[metaStarted]
			}
			next.Deaths, next.Since = int(deaths), time.UnixMilli(since).UTC()
		}
		for key, value := range map[string]int64{metaIncarnation: last + 1, metaStarted: now.UnixMilli(), metaDeaths: deaths, metaDeathsSince: since} {
			if err := g.setMeta(key, value); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	if err != nil {
		return store.Incarnation{}, fmt.Errorf("next incarnation: %w", err)
	}
	return next, nil
}

// Progressed keeps that this run did work. It outlives the death of the process.
func (s *Store) Progressed(ctx context.Context) error { return s.noteRun(ctx, metaProgressed) }

// Stopped keeps that this run ends because it was told to, and does not die.
func (s *Store) Stopped(ctx context.Context) error { return s.noteRun(ctx, metaStopped) }

func (s *Store) noteRun(ctx context.Context, key string) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		run, err := meta(g.conn, metaIncarnation)
		if err != nil {
			return nil, err
		}
		return nil, g.setMeta(key, run)
	})
	return store.About(err, "keep that this run has %s", key)
}

func (g *group) setMeta(key string, value int64) error {
	return g.exec(`INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, key, value)
}

// metaProbed is when the store was asked last whether it can be written.
const metaProbed = "probed"

// Probe writes to the store, durably. An error says that it cannot be written now.
func (s *Store) Probe(ctx context.Context) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		g.durable = true
		return nil, g.setMeta(metaProbed, time.Now().UnixMilli())
	})
	return store.About(err, "write to the store")
}
