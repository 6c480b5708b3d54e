package sqlitestore

import (
	"context"
	"database/sql/driver"
	"strings"
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

// ListPlans returns how SQLite means to run the statements of lists.
func (s *Store) ListPlans() (map[string]string, error) {
	plans := map[string]string{}
	err := s.read(context.Background(), func(c *conn) error {
		for name, sql := range map[string]string{
			"all": listAll, "workflow": listOfWorkflow, "unfinished": listUnfinished, "spanned": listSpanned,
		} {
			row := make([]driver.Value, 4)
			err := c.query("EXPLAIN QUERY PLAN "+sql, make([]driver.Value, strings.Count(sql, "?")), row, func() error {
				plans[name] += asText(row[3]) + "; "
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return plans, err
}
