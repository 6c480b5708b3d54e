package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/makegood-dev/makegood/internal/store"
)

var errScripted = errors.New("as scripted")

// scripted is a connection to nothing, whose answers a test writes.
type scripted struct {
	// prepares counts what was prepared; unprepared is the error of preparing, unclosed that of closing.
	prepares             int
	unprepared, unclosed error
	stmt                 scriptedStmt
	// written are the pages that SQLite says it has written, unsaid is the error of asking.
	written int
	unsaid  error
}

func (c *scripted) Prepare(string) (driver.Stmt, error) { return nil, errScripted }

func (c *scripted) PrepareContext(context.Context, string) (driver.Stmt, error) {
	c.prepares++
	return c.stmt, c.unprepared
}
func (c *scripted) Close() error              { return c.unclosed }
func (c *scripted) Begin() (driver.Tx, error) { return nil, errScripted }

func (c *scripted) Status(_ sqlite.DBStatusOp, reset bool) (current, high int, err error) {
	now := c.written
	if reset {
		c.written = 0
	}
	return now, 0, c.unsaid
}

// scriptedStmt gives rows, or an error, and then may not be closed.
type scriptedStmt struct {
	driver.Stmt
	rows     []int64
	failed   error // of the query
	broken   error // of the row after the last
	unclosed error // of the rows
	stays    error // of the statement
	got      *[]driver.NamedValue
}

func (s scriptedStmt) Close() error { return s.stays }

func (s scriptedStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	*s.got = slices.Clone(args)
	return driver.RowsAffected(1), s.failed
}

func (s scriptedStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return &scriptedRows{s, 0}, s.failed
}

type scriptedRows struct {
	s  scriptedStmt
	at int
}

func (r *scriptedRows) Columns() []string { return []string{"n"} }
func (r *scriptedRows) Close() error      { return r.s.unclosed }

func (r *scriptedRows) Next(row []driver.Value) error {
	if r.at == len(r.s.rows) {
		if r.s.broken != nil {
			return r.s.broken
		}
		return io.EOF
	}
	row[0] = r.s.rows[r.at]
	r.at++
	return nil
}

// Each error of a query is told, that of its end, too, and what came before it was seen.
func TestAConnectionTellsEachErrorOfAQuery(t *testing.T) {
	other := errors.New("another")
	for name, c := range map[string]struct {
		conn scripted
		each error
		seen int
		want []error
	}{
		"all is well":         {scripted{stmt: scriptedStmt{rows: []int64{1, 2}}}, nil, 2, nil},
		"it is not prepared":  {scripted{unprepared: errScripted}, nil, 0, []error{errScripted}},
		"it is not begun":     {scripted{stmt: scriptedStmt{failed: errScripted}}, nil, 0, []error{errScripted}},
		"a row is not read":   {scripted{stmt: scriptedStmt{rows: []int64{1}, broken: errScripted}}, nil, 1, []error{errScripted}},
		"it is not closed":    {scripted{stmt: scriptedStmt{rows: []int64{1}, unclosed: errScripted}}, nil, 1, []error{errScripted}},
		"the caller stops":    {scripted{stmt: scriptedStmt{rows: []int64{1, 2}}}, other, 1, []error{other}},
		"that, and its close": {scripted{stmt: scriptedStmt{rows: []int64{1, 2}, unclosed: errScripted}}, other, 1, []error{other, errScripted}},
	} {
		raw := c.conn
		conn := &conn{raw: &raw, stmts: map[string]*statement{}}
		seen := 0
		err := conn.query("q", nil, func([]driver.Value) error { seen++; return c.each })
		if seen != c.seen || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v after %d rows, want %v after %d", name, err, seen, c.want, c.seen)
		}
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v, too", name, err, want)
			}
		}
		if row, err := conn.one("q"); c.each == nil && ((row != nil) != (c.seen > 0) || (err == nil) != (c.want == nil)) {
			t.Errorf("%s: one found %v, %v, want %v", name, row, err, c.want)
		}
		if want := 1; raw.unprepared == nil && raw.prepares != want {
			t.Errorf("%s: a statement was prepared %d times, want once", name, raw.prepares)
		}
	}
}

// Arguments are bound in their order, those of the call before are gone, and what cannot be prepared is not run.
func TestAConnectionBindsWhatItIsGiven(t *testing.T) {
	var got []driver.NamedValue
	raw := &scripted{stmt: scriptedStmt{got: &got}}
	c := &conn{raw: raw, stmts: map[string]*statement{}}
	for _, args := range [][]driver.Value{
		{int64(1), "two", nil},
		{"one"},
		{int64(1), "two", "three"},
		{int64(1), "2", int64(3)},
		{nil, []byte("2"), int64(4)},
		{"", []byte("3"), int64(4)},
		{int64(0), "", []byte("")},
		{},
	} {
		if _, err := c.exec("q", args...); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(args) {
			t.Fatalf("got %v, want %v", got, args)
		}
		for i, a := range got {
			if a.Ordinal != i+1 || !reflect.DeepEqual(a.Value, args[i]) {
				t.Errorf("got %v, want %v in this order", got, args)
			}
		}
	}
	q := c.stmts["q"]
	if n := testing.AllocsPerRun(100, func() { q.bind([]driver.Value{int64(1000), "the same", nil}) }); n > 0 {
		t.Errorf("the same arguments as before took %v allocations, want none", n)
	}
	raw.unprepared = errScripted
	if _, err := c.exec("another"); !errors.Is(err, errScripted) {
		t.Errorf("got %v, want %v", err, errScripted)
	}
}

// A connection is closed once, with its statements, and tells what each of them says.
func TestAConnectionIsClosedWithItsStatements(t *testing.T) {
	stays := errors.New("it stays")
	raw := &scripted{unclosed: errScripted, stmt: scriptedStmt{stays: stays}}
	c := &conn{raw: raw, stmts: map[string]*statement{}}
	if _, err := c.prepared("q"); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); !errors.Is(err, errScripted) || !errors.Is(err, stays) {
		t.Errorf("got %v, want both %v and %v", err, errScripted, stays)
	}
	if err := c.close(); err != nil || c.raw != nil || c.stmts != nil {
		t.Errorf("closed again: got %v", err)
	}
	if err := (*conn)(nil).close(); err != nil {
		t.Errorf("none: got %v", err)
	}
}

// failing is a store whose connection a test has written.
func failing(raw *scripted) *Store {
	s := &Store{
		conn: &conn{raw: raw, stmts: map[string]*statement{}}, logger: slog.New(slog.DiscardHandler), writing: make(chan struct{}, 1),
		closing: make(chan struct{}), lost: make(chan struct{}), cache: newCache(0),
	}
	close(s.closing) // It does not try to go on.
	return s
}

// A log that cannot be copied is tried again when it has grown by as much as it may, unless the disk can be trusted no
// more.
func TestALogThatCannotBeCopiedIsTriedAgainLater(t *testing.T) {
	s := failing(&scripted{unprepared: errScripted})
	s.logPages, s.checkpointAt, s.logLimit = 7, 5, 100
	s.checkpointOrFail()
	if s.checkpointAt != 107 || s.logPages != 7 || s.Failure() != nil {
		t.Errorf("got the next copy at %d of %d pages, failure %v, want 107, 7 and none", s.checkpointAt, s.logPages, s.Failure())
	}
	s = failing(&scripted{unprepared: errFlush})
	s.logPages, s.checkpointAt, s.logLimit = 7, 5, 100
	s.checkpointOrFail()
	select {
	case <-s.Lost():
	default:
		t.Error("the store is not lost, want that")
	}
	if !errors.Is(s.Failure(), errFlush) || !errors.Is(s.Failure(), store.ErrFailed) {
		t.Errorf("got %v, want %v", s.Failure(), errFlush)
	}
	s = failing(&scripted{stmt: scriptedStmt{rows: []int64{1}}})
	s.logPages, s.checkpointAt, s.logLimit = 7, 5, 100
	s.checkpointOrFail()
	if s.checkpointAt != 14 || s.logPages != 7 || s.Stats().Checkpoints != 1 {
		t.Errorf("beside a reader: got the next copy at %d of %d pages, want 14 of 7", s.checkpointAt, s.logPages)
	}
	s = failing(&scripted{stmt: scriptedStmt{rows: []int64{0}}})
	s.logPages, s.checkpointAt, s.logLimit = 7, 5, 100
	s.checkpointOrFail()
	if s.checkpointAt != 100 || s.logPages != 0 {
		t.Errorf("copied: got the next copy at %d of %d pages, want 100 of none", s.checkpointAt, s.logPages)
	}
}

// The length of the log is what was written since it was copied. Where it cannot be told the store has failed; a store
// that has failed copies nothing.
func TestTheLengthOfTheLogIsAddedUp(t *testing.T) {
	raw := &scripted{}
	s := failing(raw)
	s.checkpointAt = 10
	for i, want := range []bool{false, false, true, true} {
		if raw.written = 4; i == 3 {
			raw.written = 0
		}
		if got := s.checkpointDue(); got != want {
			t.Errorf("look %d: got %v at %d pages, want %v", i, got, s.logPages, want)
		}
	}
	raw.unsaid = errScripted
	s.checkpointDue()
	if !errors.Is(s.Failure(), errScripted) {
		t.Errorf("got %v, want %v", s.Failure(), errScripted)
	}
	if s.checkpointDue() {
		t.Error("a store that has failed copies its log, want not")
	}
}

// A log that was removed is copied by the connection that has it open. The error says where there is none, and where a
// reader stays.
func TestALogIsRescuedByItsConnection(t *testing.T) {
	for says, c := range map[string]*conn{
		"no connection is left":    nil,
		"no connection is left ":   {},
		"its content cannot be":    {raw: &scripted{unprepared: errScripted}, stmts: map[string]*statement{}},
		"was copied into the file": {raw: &scripted{stmt: scriptedStmt{rows: []int64{0}, got: new([]driver.NamedValue)}}, stmts: map[string]*statement{}},
		"a reader kept a part ":    {raw: &scripted{stmt: scriptedStmt{rows: []int64{1}, got: new([]driver.NamedValue)}}, stmts: map[string]*statement{}},
	} {
		s := failing(nil)
		s.conn, s.path = c, "the file"
		if err := s.rescue(errReplaced); !errors.Is(err, errReplaced) || !strings.Contains(err.Error(), strings.TrimSpace(says)) {
			t.Errorf("got %v, want that it says %q", err, says)
		}
	}
}

// The files of a store are at their paths, or were replaced; what cannot be looked at is an error of its own.
func TestTheFilesOfAStoreAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	main, wal := filepath.Join(dir, "main"), filepath.Join(dir, "wal")
	write := func(path string) fs.FileInfo {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	l := &walLog{path: wal, mainPath: main, syncFile: func(*os.File) error { return nil }}
	if err := l.same(); err != nil {
		t.Errorf("nothing is open: got %v", err)
	}
	if err := l.sync(); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced) {
		t.Errorf("there is no log: got %v, want that", err)
	}
	l.main = write(main)
	write(wal)
	for range 2 {
		if err := l.sync(); err != nil || l.file == nil || l.info == nil {
			t.Fatalf("got %v, want the log opened", err)
		}
	}
	for what, path := range map[string]string{"the log": wal, "the file": main} {
		away := path + "-away"
		if err := os.Rename(path, away); err != nil {
			t.Fatal(err)
		}
		if err := l.same(); !errors.Is(err, errReplaced) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s is away: got %v, want %v", what, err, errReplaced)
		}
		write(path)
		if err := l.sync(); !errors.Is(err, errReplaced) {
			t.Errorf("another is in the place of %s: got %v, want %v", what, err, errReplaced)
		}
		if err := os.Rename(away, path); err != nil {
			t.Fatal(err)
		}
		if err := l.same(); err != nil {
			t.Errorf("%s is back: got %v", what, err)
		}
	}
	l.mainPath = filepath.Join(main, "below")
	if err := l.same(); err == nil || errors.Is(err, errReplaced) {
		t.Errorf("a path that cannot be: got %v, want an error that is not %v", err, errReplaced)
	}
	l.mainPath = main
	l.syncFile = func(*os.File) error { return errScripted }
	if err := l.sync(); !errors.Is(err, errFlush) || !errors.Is(err, errScripted) {
		t.Errorf("it cannot be flushed: got %v, want %v", err, errFlush)
	}
	if err := l.close(); err != nil || l.file != nil || l.info != nil {
		t.Errorf("closed: got %v", err)
	}
	for _, none := range []*walLog{l, nil} {
		if err := none.close(); err != nil {
			t.Errorf("closed again: got %v", err)
		}
	}
	if err := os.Remove(wal); err != nil {
		t.Fatal(err)
	}
	if err := l.same(); err != nil {
		t.Errorf("a log that is not open is away: got %v, want nothing", err)
	}
	if err := syncFolder(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was flushed")
	}
}

// Who holds a folder is what its file says, if it says anything.
func TestWhoHoldsAFolderIsWhatItsFileSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	says := func(want string) {
		t.Helper()
		if got := holder(path); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	says("which was removed")
	for text, want := range map[string]string{"": "it has not written its name", " \n": "it has not written its name", "process 7\n": "process 7"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		says(want)
	}
	path = filepath.Join(path, "below")
	says("it has not written its name")
}

// Files and folders of a store are its owner's, and a folder that is there already stays as it is.
func TestWhatAStoreMakesIsPrivate(t *testing.T) {
	dir := t.TempDir()
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	file := filepath.Join(dir, "file")
	for _, want := range []bool{true, false} {
		if made, err := makeFile(file); err != nil || made != want || mode(file) != privateFile {
			t.Errorf("a file: got made %v, %v, want %v", made, err, want)
		}
	}
	if made, err := makeFile(filepath.Join(dir, "none", "file")); err == nil || made {
		t.Errorf("a file where there is no folder: got %v, %v", made, err)
	}
	deep := filepath.Join(dir, "a", "b")
	if err := makeFolder(deep); err != nil || mode(deep) != privateFolder {
		t.Errorf("a folder: got %v", err)
	}
	if err := os.Chmod(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := makeFolder(deep); err != nil || mode(deep) != 0o755 {
		t.Errorf("a folder that is there: got %v and its mode %v, want it left", err, mode(deep))
	}
	if err := makeFolder(file); err == nil {
		t.Error("a file is no folder, and was taken for one")
	}
	if err := os.WriteFile(file+"-wal", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makePrivate(file); err != nil || mode(file+"-wal") != privateFile {
		t.Errorf("a log: got %v and its mode %v", err, mode(file+"-wal"))
	}
	if err := makePrivate(filepath.Join(file, "below")); err == nil {
		t.Error("what cannot be made private is no error")
	}
}
