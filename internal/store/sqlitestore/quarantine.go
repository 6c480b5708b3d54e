package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

const (
	putQuarantined    = `INSERT INTO quarantined(at, bytes, body) VALUES(?, ?, ?)`
	sumQuarantined    = `SELECT count(*), coalesce(sum(bytes), 0) FROM quarantined INDEXED BY quarantined_bytes`
	oldestQuarantined = `SELECT id, bytes FROM quarantined ORDER BY id LIMIT 1`
	deleteQuarantined = `DELETE FROM quarantined WHERE id = ?`
	// Messages were put there in the order of their ids, as far as the clock of the machine goes forward.
	expireQuarantined = `DELETE FROM quarantined WHERE id IN (SELECT id FROM quarantined WHERE at <= ? ORDER BY id LIMIT ?+0)`
	countDropped      = `INSERT INTO meta(key, value) VALUES('quarantine_dropped', 1) ON CONFLICT DO UPDATE SET value = value + 1`

	selectQuarantined = `SELECT id, at, body FROM quarantined WHERE id = ?`
	// A page ends with the message that makes it too large.
	pageQuarantined = `SELECT q.id, q.at, q.body FROM quarantined q JOIN (
			SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM (SELECT id, bytes FROM quarantined WHERE id > ? ORDER BY id LIMIT ?+0)
		) p ON p.id = q.id WHERE p.before < ? ORDER BY q.id`
	quarantinedColumns = 3

	// expiryQuarantined bounds how many one transaction deletes.
	expiryQuarantined = 256
)

// Quarantine keeps a message, durably, and drops the oldest where there are too many (store.MaxQuarantined) or they are
// too large (store.MaxQuarantinedBytes). After an error it is unknown whether it is kept.
func (s *Store) Quarantine(ctx context.Context, body string, at time.Time) error {
	err := s.submit(ctx, len(body), func(g *group) (answer, err error) {
		g.durable = true
		if err := g.exec(putQuarantined, at.UnixMilli(), int64(len(body)), body); err != nil {
			return nil, err
		}
		return nil, g.trimQuarantine()
	})
	if err != nil {
		return fmt.Errorf("keep a message in quarantine: %w", err)
	}
	return nil
}

// trimQuarantine drops the oldest messages until the others are within the bounds.
func (g *group) trimQuarantine() error {
	row := make([]driver.Value, 2)
	if _, err := g.conn.one(sumQuarantined, row); err != nil {
		return err
	}
	for count, bytes := asInt(row[0]), asInt(row[1]); count > store.MaxQuarantined || bytes > store.MaxQuarantinedBytes; count-- {
		if _, err := g.conn.one(oldestQuarantined, row); err != nil {
			return err
		}
		if err := g.exec(deleteQuarantined, asInt(row[0])); err != nil {
			return err
		}
		if err := g.exec(countDropped); err != nil {
			return err
		}
		bytes -= asInt(row[1])
	}
	return nil
}

// DropQuarantined deletes a message, durably. store.ErrNotFound.
func (s *Store) DropQuarantined(ctx context.Context, id int64) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		dropped, err := g.change(deleteQuarantined, id)
		if err == nil && !dropped {
			answer = store.ErrNotFound
		}
		return answer, err
	})
	if err != nil {
		return fmt.Errorf("drop message %d: %w", id, err)
	}
	return nil
}

// ExpireQuarantined deletes some of the messages that were put there by that time, the oldest first, and reports
// whether there are more. It is not flushed, as Expire is not.
func (s *Store) ExpireQuarantined(ctx context.Context, by time.Time) (more bool, err error) {
	err = s.submit(ctx, 0, func(g *group) (answer, err error) {
		result, err := g.conn.exec(expireQuarantined, by.UnixMilli(), int64(expiryQuarantined))
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
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
	row := make([]driver.Value, quarantinedColumns)
	err := r.read(ctx, func(c *conn) (err error) {
		if page.Dropped, err = meta(c, "quarantine_dropped"); err != nil {
			return err
		}
		return c.query(pageQuarantined, []driver.Value{after, int64(limit), int64(store.MaxQuarantinePageBytes)}, row, func() error {
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
	row := make([]driver.Value, quarantinedColumns)
	var found bool
	err := r.read(ctx, func(c *conn) (err error) {
		found, err = c.one(selectQuarantined, row, id)
		return err
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Quarantined{}, fmt.Errorf("read message %d of quarantine: %w", id, err)
	}
	return scanQuarantined(row), nil
}

func scanQuarantined(row []driver.Value) store.Quarantined {
	return store.Quarantined{ID: asInt(row[0]), At: asTime(row[1]), Body: asText(row[2])}
}
