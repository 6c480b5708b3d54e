package sqlitestore

import (
	"reflect"
	"testing"
)

// A place that was read is read again as the same one, in whatever order its list goes.
func FuzzPage(f *testing.F) {
	f.Add("12", 0)
	f.Add("1700000000000/j", 2)
	f.Add("2+12", 0)
	f.Fuzz(func(t *testing.T, place string, in int) {
		p := page{ways: []way{{}, {order: order(uint(in) % uint(len(ends)))}}, limit: 1}
		if !p.begin(place) || place == "" {
			return
		}
		if want, got := len(p.from()), countPlaces(ends[p.ways[0].order])-1; got != want {
			t.Errorf("order %d has %d places for %d values", p.ways[0].order, got, want)
		}
		again := p
		if !again.begin(place) || !reflect.DeepEqual(again, p) {
			t.Errorf("place %q begins elsewhere when read again: %+v, %+v", place, p, again)
		}
	})
}

func countPlaces(sql string) (n int) {
	for _, c := range sql {
		if c == '?' {
			n++
		}
	}
	return n
}
