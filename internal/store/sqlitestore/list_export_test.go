package sqlitestore

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/makegood-dev/makegood/internal/store"
)

// Spread moves the rows of the jobs apart, as if others had lain between them.
func (s *Store) Spread(by int64) error {
	return s.submit(context.Background(), 0, func(g *group) (answer, err error) {
		_, err = g.conn.exec(`UPDATE jobs SET row = row * ?`, -by)
		if err == nil {
			_, err = g.conn.exec(`UPDATE jobs SET row = -row`)
		}
		return nil, err
	})
}

// ListPlan returns how SQLite means to read a page of a list.
func (s *Store) ListPlan(filter store.Filter) (plan string, err error) {
	err = s.read(context.Background(), func(c *conn) error {
		for _, w := range waysTo(filter) {
			sql := w.sql()
			err := c.query("EXPLAIN QUERY PLAN "+sql, make([]driver.Value, strings.Count(sql, "?")), func(row []driver.Value) error {
				plan += asText(row[3]) + "; "
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return plan, err
}
