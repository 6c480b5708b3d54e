package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

const (
	putQuarantined    = `INSERT INTO quarantined(at, bytes, body) VALUES(?, ?, ?)`
	sumQuarantined    = `SELECT count(*), coalesce(sum(bytes), 0) FROM quarantined INDEXED BY quarantined_bytes`
	dropOldest        = `DELETE FROM quarantined WHERE id = (SELECT min(id) FROM quarantined) RETURNING bytes`
	deleteQuarantined = `DELETE FROM quarantined WHERE id = ? RETURNING bytes`
	// Messages were put there in the order of their ids, as far as the clock of the machine goes forward.
	expireQuarantined = `DELETE FROM quarantined WHERE id IN (SELECT id FROM quarantined WHERE at <= ? ORDER BY id LIMIT ?+0) RETURNING bytes`
	countDropped      = `INSERT INTO meta(key, value) VALUES('quarantine_dropped', 1) ON CONFLICT DO UPDATE SET value = value + 1`

	selectQuarantined = `SELECT id, at, body FROM quarantined WHERE id = ?`
	// A page ends with the message that makes it too large.
	pageQuarantined = `SELECT q.id, q.at, q.body FROM quarantined q JOIN (
			SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM (SELECT id, bytes FROM quarantined WHERE id > ? ORDER BY id LIMIT ?+0)
		) p ON p.id = q.id WHERE p.before < ? ORDER BY q.id`

	// expiryQuarantined bounds how many one transaction deletes.
	expiryQuarantined = 256
)

// shelf is how full the quarantine is. It is counted for the first message after Open, or after a group that failed,
// and kept from then on: counting 10,000 messages takes longer than writing one.
type shelf struct {
	counted         bool
	messages, bytes int64
}

func (s *shelf) add(messages, bytes int64) {
	s.messages += messages
	s.bytes += bytes
}

// Quarantine keeps a message, durably, and drops the oldest where there are too many (store.MaxQuarantined) or they are
// too large (store.MaxQuarantinedBytes). After an error it is unknown whether it is kept.
func (s *Store) Quarantine(ctx context.Context, body string, at time.Time) error {
	err := s.submit(ctx, len(body), func(g *group) (answer, err error) {
		g.durable = true
		if err := g.countQuarantine(); err != nil {
			return nil, err
		}
		if err := g.exec(putQuarantined, at.UnixMilli(), int64(len(body)), body); err != nil {
			return nil, err
		}
		g.shelf.add(1, int64(len(body)))
		return nil, g.trimQuarantine()
	})
	return store.About(err, "keep a message in quarantine")
}

func (g *group) countQuarantine() error {
	if g.shelf.counted {
		return nil
	}
	row, err := g.conn.one(sumQuarantined)
	if err == nil {
		g.shelf = shelf{true, asInt(row[0]), asInt(row[1])}
	}
	return err
}

// trimQuarantine drops the oldest messages until the others are within the bounds.
func (g *group) trimQuarantine() error {
	for g.shelf.messages > store.MaxQuarantined || g.shelf.bytes > store.MaxQuarantinedBytes {
		if n, err := g.takeOut(dropOldest); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("%d messages dropped, want the oldest one", n))
		}
		if err := g.exec(countDropped); err != nil {
			return err
		}
	}
	return nil
}

// takeOut deletes messages, and returns how many.
func (g *group) takeOut(sql string, args ...driver.Value) (n int, err error) {
	err = g.conn.query(sql, args, func(row []driver.Value) error {
		n++
		g.shelf.add(-1, -asInt(row[0]))
		return nil
	})
	return n, err
}

// DropQuarantined deletes a message, durably. store.ErrNotFound.
func (s *Store) DropQuarantined(ctx context.Context, id int64) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		n, err := g.takeOut(deleteQuarantined, id)
		if err != nil || n == 0 {
			return store.ErrNotFound, err
		}
		g.durable = true
		return nil, nil
	})
	return store.About(err, "drop message %d", id)
}

// ExpireQuarantined deletes some of the messages that were put there by that time, the oldest first, and reports
// whether there are more. It is not flushed, as Expire is not.
func (s *Store) ExpireQuarantined(ctx context.Context, by time.Time) (more bool, err error) {
	err = s.submit(ctx, 0, func(g *group) (answer, err error) {
		n, err := g.takeOut(expireQuarantined, by.UnixMilli(), int64(expiryQuarantined))
		more = n == expiryQuarantined
		return nil, err
	})
	if err != nil {
		return false, fmt.Errorf("delete messages in quarantine since %s: %w", by.Format(time.RFC3339), err)
	}
	return more, nil
}

// Quarantined reads at most limit messages that come after one, or after 0, the oldest first; fewer where they are
// large (store.MaxQuarantinePageBytes). None: there are no more.
func (r *Reader) Quarantined(ctx context.Context, after int64, limit int) (store.QuarantinePage, error) {
	var page store.QuarantinePage
	err := r.read(ctx, func(c *conn) (err error) {
		if page.Dropped, err = meta(c, "quarantine_dropped"); err != nil {
			return err
		}
		return c.query(pageQuarantined, []driver.Value{after, int64(limit), int64(store.MaxQuarantinePageBytes)}, func(row []driver.Value) error {
			page.Messages = append(page.Messages, scanQuarantined(row))
			return nil
		})
	})
	if err != nil {
		return store.QuarantinePage{}, fmt.Errorf("read quarantine: %w", err)
	}
	return page, nil
}

// QuarantinedMessage reads a message. store.ErrNotFound.
func (r *Reader) QuarantinedMessage(ctx context.Context, id int64) (store.Quarantined, error) {
	message, err := valueOf(ctx, r, scanQuarantined, selectQuarantined, id)
	return message, store.About(err, "read message %d of quarantine", id)
}

func scanQuarantined(row []driver.Value) store.Quarantined {
	return store.Quarantined{ID: asInt(row[0]), At: asTime(row[1]), Body: asText(row[2])}
}
