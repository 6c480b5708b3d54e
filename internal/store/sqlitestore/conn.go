package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/makegood-dev/makegood/internal/store"
)

// conn is one connection and its prepared statements, used by one goroutine at a time. It speaks to
// the driver directly: the pool and the conversions of database/sql cost as much as a small statement.
type conn struct {
	raw   driver.Conn
	stmts map[string]*statement
}

// statement is one that stays prepared, with the arguments of its last call.
type statement struct {
	driver.Stmt
	args []driver.NamedValue
}

// dial opens the file at path and runs the pragmas, in order. Pragmas are run here and nowhere else:
// preparing one may already take effect (synchronous does), so none is ever kept as a statement.
func dial(path string, readOnly bool, pragmas ...string) (*conn, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	query := url.Values{"_pragma": pragmas}
	if readOnly {
		query.Set("mode", "ro")
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: absolute, RawQuery: query.Encode()}
	raw, err := new(sqlite.Driver).Open(name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &conn{raw: raw, stmts: map[string]*statement{}}, nil
}

// close may be called again.
func (c *conn) close() error {
	if c == nil || c.raw == nil {
		return nil
	}
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	errs = append(errs, c.raw.Close())
	c.raw, c.stmts = nil, nil
	return errors.Join(errs...)
}

// prepared returns the statement for sql, which must be a constant: a prepared statement stays prepared. A limit that
// is bound is written ?+0. SQLite plans by the value of a bare one, and so prepares the statement again whenever it is
// bound, which made an empty sweep cost three times as much.
func (c *conn) prepared(sql string) (*statement, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	raw, err := c.raw.(driver.ConnPrepareContext).PrepareContext(context.Background(), sql)
	if err != nil {
		return nil, err
	}
	s := &statement{Stmt: raw}
	c.stmts[sql] = s
	return s, nil
}

// bind returns the arguments as the driver takes them. It keeps those that are the same as at the last call, as many
// are, and copies the others: so no argument of a caller escapes, and only a new value needs an allocation.
func (s *statement) bind(args []driver.Value) []driver.NamedValue {
	for len(s.args) < len(args) {
		s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1})
	}
	for i, arg := range args {
		last := &s.args[i].Value
		switch arg := arg.(type) {
		case nil:
			*last = nil
		case string:
			if had, ok := (*last).(string); !ok || had != arg {
				*last = arg
			}
		case int64:
			if had, ok := (*last).(int64); !ok || had != arg {
				*last = arg
			}
		case []byte:
			*last = arg
		default:
			// Naming its type would have all arguments escape.
			panic(fmt.Sprintf("sqlitestore: argument %d is neither null, a text, an int64 nor bytes", i+1))
		}
	}
	return s.args[:len(args)]
}

// exec runs a statement that returns no rows. No context reaches it: a write that was begun is ended.
func (c *conn) exec(sql string, args ...driver.Value) (driver.Result, error) {
	s, err := c.prepared(sql)
	if err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), s.bind(args))
}

// query runs a statement and calls each with the values of every row.
func (c *conn) query(sql string, args []driver.Value, each func(row []driver.Value) error) (err error) {
	s, err := c.prepared(sql)
	if err != nil {
		return err
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), s.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// one runs a statement that returns at most one row, and returns the row; nil: there is none.
func (c *conn) one(sql string, args ...driver.Value) (row []driver.Value, err error) {
	err = c.query(sql, args, func(found []driver.Value) error { row = found; return nil })
	return row, err
}

// one reads the one row of a statement. store.ErrNotFound.
func (r *Reader) one(ctx context.Context, sql string, args ...driver.Value) (row []driver.Value, err error) {
	err = r.read(ctx, func(c *conn) (err error) {
		row, err = c.one(sql, args...)
		return err
	})
	if err == nil && row == nil {
		err = store.ErrNotFound
	}
	return row, err
}

// rowsOf reads the rows of a statement, and returns what scan makes of each; after an error, none.
func rowsOf[T any](ctx context.Context, r *Reader, scan func(row []driver.Value) T, sql string, args ...driver.Value) (all []T, err error) {
	err = r.read(ctx, func(c *conn) error {
		return c.query(sql, args, func(row []driver.Value) error {
			all = append(all, scan(row))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// valueOf reads the one row of a statement, and returns what scan makes of it. store.ErrNotFound.
func valueOf[T any](ctx context.Context, r *Reader, scan func(row []driver.Value) T, sql string, args ...driver.Value) (value T, err error) {
	row, err := r.one(ctx, sql, args...)
	if err != nil {
		return value, err
	}
	return scan(row), nil
}

func firstText(row []driver.Value) string { return asText(row[0]) }

func firstBytes(row []driver.Value) []byte { return asBytes(row[0]) }

func firstNumber(row []driver.Value) int { return int(asInt(row[0])) }

// millis writes a time as a column; the zero time is null.
func millis(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func asTime(v driver.Value) time.Time {
	if v == nil {
		return time.Time{}
	}
	return time.UnixMilli(asInt(v)).UTC()
}

// The columns are strictly typed, so a value of another type than these is null.

func asInt(v driver.Value) int64    { n, _ := v.(int64); return n }
func asText(v driver.Value) string  { s, _ := v.(string); return s }
func asBytes(v driver.Value) []byte { b, _ := v.([]byte); return b }
