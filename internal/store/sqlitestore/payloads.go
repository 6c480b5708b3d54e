package sqlitestore

import (
	"context"
	"database/sql/driver"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// PutPayload stores a value once; see store.Payloads.
func (s *Store) PutPayload(ctx context.Context, job, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	err := s.submit(ctx, len(value), func(g *group) (answer, err error) {
		_, err = g.conn.exec(`INSERT INTO payloads(job, key, value) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, job, key, value)
		return nil, err
	})
	return store.About(err, "put payload %s of job %s", key, job)
}

// DropPages deletes pages of a job's history; see store.Histories. It is not flushed: pages that come back with the
// loss of power are dropped with the next.
func (s *Store) DropPages(ctx context.Context, id string, after, before int) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) { return nil, g.dropPages(id, after, before) })
	return store.About(err, "drop pages of the history of job %s", id)
}

func (g *group) dropPages(id string, after, before int) error {
	var keys []string
	between := []driver.Value{id, job.HistoryFrom(after + 1), job.HistoryFrom(before)}
	err := g.conn.query(`SELECT key FROM payloads WHERE job = ? AND key >= ? AND key < ?`, between, func(row []driver.Value) error {
		if key := asText(row[0]); job.Falls(key, after, before) {
			keys = append(keys, key)
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			_, err = g.conn.exec(`DELETE FROM payloads WHERE job = ? AND key = ?`, id, key)
		}
	}
	return err
}

// PutDefinition stores a definition and makes it current; see store.Definitions. It is durable, and costs no flush if
// it was so already, as at nearly every start of an engine.
func (s *Store) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	err := s.submit(ctx, len(definition), func(g *group) (answer, err error) {
		if _, err = g.change(`INSERT INTO definitions(hash, body) VALUES(?, ?) ON CONFLICT DO NOTHING`, hash, definition); err != nil {
			return nil, err
		}
		_, err = g.change(`INSERT INTO current(name, hash) VALUES(?, ?) ON CONFLICT DO UPDATE SET hash = excluded.hash WHERE hash <> excluded.hash`, name, hash)
		return nil, err
	})
	return store.About(err, "put definition %s of workflow %s", hash, name)
}

// MendDefinition puts a definition in the place of different bytes stored under its hash, and reports whether they
// differed: then they were damaged, since a definition is named by its hash. It is durable.
func (s *Store) MendDefinition(ctx context.Context, hash string, definition []byte) (mended bool, err error) {
	err = s.submit(ctx, len(definition), func(g *group) (answer, err error) {
		mended, err = g.change(`UPDATE definitions SET body = ? WHERE hash = ? AND body <> ?`, definition, hash, definition)
		return nil, err
	})
	return mended, store.About(err, "mend definition %s", hash)
}
