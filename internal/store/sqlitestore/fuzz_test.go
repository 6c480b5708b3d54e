package sqlitestore

import (
	"reflect"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func FuzzPage(f *testing.F) {
	f.Add("12", "")
	f.Add("1700000000000/j", "Error")
	f.Fuzz(func(t *testing.T, cursor, state string) {
		p := page{filter: store.Filter{State: makegood.ProcessState(state)}, limit: 1}
		if !p.begin(cursor) || cursor == "" {
			return
		}
		if p.before < 1 && !p.byKey() {
			t.Errorf("cursor %q begins at row %d", cursor, p.before)
		}
		again := p
		if !again.begin(cursor) || !reflect.DeepEqual(again, p) {
			t.Errorf("cursor %q begins elsewhere when read again: %+v, %+v", cursor, p, again)
		}
	})
}
