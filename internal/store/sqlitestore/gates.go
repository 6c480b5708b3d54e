package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// A permit is a row of its own, and so is a ticket. Texts sort by their bytes, as the ranks of tickets must.
const (
	selectPermit  = `SELECT data FROM permits WHERE agent = ? AND n = ?`
	selectPermits = `SELECT data FROM permits WHERE agent = ? ORDER BY n`
	putPermit     = `INSERT INTO permits(agent, n, data) VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data`
	deletePermit  = `DELETE FROM permits WHERE agent = ? AND n = ?`
	selectTickets = `SELECT data FROM tickets WHERE agent = ? ORDER BY rank LIMIT ?+0`
	selectBehind  = `SELECT data FROM tickets WHERE agent = ? AND rank > ? ORDER BY rank LIMIT 1`
	countTickets  = `SELECT count(*) FROM (SELECT 1 FROM tickets WHERE agent = ? LIMIT ?+0)`
	putTicket     = `INSERT INTO tickets(agent, rank, data) VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data`
	selectGate    = `SELECT min(gate) FROM (SELECT min(agent) AS gate FROM permits WHERE agent > ?1 AND agent < ?2
		UNION ALL SELECT min(agent) FROM tickets WHERE agent > ?1 AND agent < ?2)`
	deleteTicket = `DELETE FROM tickets WHERE agent = ? AND rank = ?`
)

// PutPermit stores a permit; see store.Gates.
func (s *Store) PutPermit(ctx context.Context, agent string, was, is job.Permit) error {
	data := store.EncodePermit(is)
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) {
		var stored job.Permit
		row, err := g.conn.one(selectPermit, agent, int64(was.N))
		if err != nil {
			return nil, err
		}
		if row != nil {
			if stored, answer = store.DecodePermit(asBytes(row[0])); answer != nil {
				return answer, nil
			}
		}
		writes, answer := store.PutOver(stored, was, is)
		if !writes {
			return answer, nil
		}
		g.durable = true
		if is.Free() {
			return nil, g.exec(deletePermit, agent, int64(was.N))
		}
		return nil, g.exec(putPermit, agent, int64(was.N), data)
	})
	return store.About(err, "put permit of %s", agent)
}

// Enter stores a ticket; see store.Gates.
func (s *Store) Enter(ctx context.Context, agent string, t job.Ticket) error {
	data := store.EncodeTicket(t)
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) {
		g.durable = true
		return nil, g.exec(putTicket, agent, t.Rank(), data)
	})
	return store.About(err, "ticket %s of %s", t.Rank(), agent)
}

// Leave deletes a ticket; see store.Gates.
func (s *Store) Leave(ctx context.Context, agent string, t job.Ticket) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		if deleted, err := g.change(deleteTicket, agent, t.Rank()); err != nil || deleted {
			return nil, err
		}
		return store.ErrNotFound, nil
	})
	return store.About(err, "leave, ticket %s of %s", t.Rank(), agent)
}

// Gate reads a gate; see store.Gates.
func (r *Reader) Gate(ctx context.Context, agent string, most int) (g store.Gate, err error) {
	err = r.read(ctx, func(c *conn) error {
		err := c.query(selectPermits, []driver.Value{agent}, func(row []driver.Value) error {
			p, err := store.DecodePermit(asBytes(row[0]))
			g.Permits = append(g.Permits, p)
			return err
		})
		if err != nil {
			return err
		}
		return c.query(selectTickets, []driver.Value{agent, int64(most)}, func(row []driver.Value) error {
			t, err := store.DecodeTicket(asBytes(row[0]))
			g.Waiting = append(g.Waiting, t)
			return err
		})
	})
	if err != nil {
		return store.Gate{}, fmt.Errorf("gate of %s: %w", agent, err)
	}
	return g, nil
}

// Behind reads a ticket; see store.Gates.
func (r *Reader) Behind(ctx context.Context, agent, rank string) (t job.Ticket, err error) {
	err = r.read(ctx, func(c *conn) error {
		return c.query(selectBehind, []driver.Value{agent, rank}, func(row []driver.Value) (err error) {
			t, err = store.DecodeTicket(asBytes(row[0]))
			return err
		})
	})
	return t, store.About(err, "ticket of %s behind %s", agent, rank)
}

// CountWaiting counts tickets; see store.Gates.
func (r *Reader) CountWaiting(ctx context.Context, agent string, most int) (int, error) {
	n, err := valueOf(ctx, r, firstNumber, countTickets, agent, int64(most))
	return n, store.About(err, "count the tickets of %s", agent)
}

// NextGate finds a gate; see store.Gates. The names of those of an agent's values come before AGENT0.
func (r *Reader) NextGate(ctx context.Context, agent, value string) (string, error) {
	gate, err := valueOf(ctx, r, firstText, selectGate, agent+"/"+value, agent+"0")
	return gate, store.About(err, "the gate of %s behind %s", agent, value)
}
