package page

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// search is the search of a person: filters and free words.
type search struct {
	// Words is the search as written; Free are the words that are no filter.
	Words  string
	Free   []string
	Filter api.Filter
	Cursor string
	// values has the filter's parameters, without the words.
	values url.Values
}

// readSearch reads a search: filters as the API has them, and words, each NAME:VALUE of a filter, or free. A word wins
// over the parameter of its name. A parameter that is neither a filter nor the page's own is refused.
func readSearch(r *http.Request, now time.Time) (s search, err error) {
	query := r.URL.Query()
	s.Words, s.Cursor = strings.TrimSpace(query.Get("q")), query.Get("cursor")
	s.values = url.Values{}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(ownParameters, name) {
			continue
		}
		p, err := filter.Named(name)
		if err != nil {
			return s, &api.InvalidError{Message: err.Error()}
		}
		for _, value := range query[name] {
			s.add(p, value, now)
		}
	}
	filters, free, err := filter.Split(s.Words)
	if err != nil {
		return s, &api.InvalidError{Message: err.Error()}
	}
	s.Free = free
	for _, word := range filters {
		if word.Kind != filter.Label {
			s.values.Del(word.Name)
		}
		s.add(word.Parameter, word.Text, now)
	}
	s.Filter, err = protocol.ReadFilter(s.values)
	return s, err
}

// ownParameters are the list's parameters that are no filters: the words, the cursor, and the rows that a browser
// keeps.
var ownParameters = []string{"q", "cursor", "row"}

// add takes one value, and leaves out an empty one.
func (s *search) add(p filter.Parameter, value string, now time.Time) {
	if value = p.Read(value, now); value != "" {
		s.values.Add(p.Name, value)
	}
}

// by returns the search with its free words as the value of this filter.
func (s search) by(name string) search {
	s.values = maps.Clone(s.values)
	s.values[name] = []string{strings.Join(s.Free, " ")}
	s.Free = nil
	return s
}

// Any reports whether anything is looked for.
func (s search) Any() bool { return len(s.values) > 0 || s.Words != "" }

// Has returns the value of a filter; empty: it is not looked for by that.
func (s search) Has(name string) string { return s.values.Get(name) }

// By is the query of the same search with its free words as a value of this filter.
func (s search) By(name string) template.URL { return s.by(name).With("") }

// With is the query of the same search with another cursor.
func (s search) With(cursor string) template.URL {
	query := url.Values{}
	maps.Copy(query, s.values)
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return template.URL(query.Encode()) //nolint:gosec // it is encoded
}
