package sqlitestore_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A job that is stored in a transaction of the caller's is there with it, and an id that is taken is refused.
func TestAJobIsStoredInATransactionOfTheCallers(t *testing.T) {
	s, path := openFile(t)
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	check(t, sqlitestore.CreateIn(t.Context(), tx, benchJob(1), nil))
	if err := sqlitestore.CreateIn(t.Context(), tx, benchJob(1), nil); !errors.Is(err, store.ErrExists) {
		t.Errorf("an id that is taken: got %v, want %v", err, store.ErrExists)
	}
	check(t, tx.Commit())
	if j := load(t, s, benchJob(1).ID); j.Workflow != benchJob(1).Workflow || j.CompleteBy.IsZero() {
		t.Errorf("got %+v, want the job", j)
	}
}
