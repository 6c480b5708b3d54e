package page

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/filter"
)

// search is what somebody looks for.
type search struct {
	// Words are as they were written; ID is one of them that is no filter.
	Words, ID string
	Filter    client.Filter
	Cursor    string
	// values are those of the filter, without the words.
	values url.Values
}

// readSearch reads what is looked for: filters as the API has them, and words, each NAME:VALUE of one, or an id. A word wins over
// the parameter of its name.
func readSearch(r *http.Request, now time.Time) (s search, err error) {
	query := r.URL.Query()
	s.Words, s.Cursor = strings.TrimSpace(query.Get("q")), query.Get("cursor")
	s.values = url.Values{}
	for _, p := range filter.Parameters() {
		for _, value := range query[p.Name] {
			if err := s.set(p, value, now); err != nil {
				return s, err
			}
		}
	}
	for word := range strings.FieldsSeq(s.Words) {
		name, value, filters := strings.Cut(word, ":")
		p, known := parameterOf(name)
		if !filters || !known {
			s.ID = word
			continue
		}
		if p.Kind != filter.Label {
			s.values.Del(p.Name)
		}
		if err := s.set(p, value, now); err != nil {
			return s, err
		}
	}
	s.Filter, err = client.ReadFilter(s.values)
	return s, err
}

// parameterOf is the filter of a name, or of a shorter one.
func parameterOf(name string) (filter.Parameter, bool) {
	if name == "reason" {
		name = "reason-prefix"
	}
	for _, p := range filter.Parameters() {
		if p.Name == name {
			return p, true
		}
	}
	return filter.Parameter{}, false
}

// set takes one value. A time may be a duration: that long ago. A state is known by its name in any case, and a switch that is on.
func (s *search) set(p filter.Parameter, value string, now time.Time) error {
	switch p.Kind {
	case filter.Time:
		if ago, err := makegood.ParseDuration(value); err == nil {
			value = now.Add(-ago.Std()).Truncate(time.Second).Format(time.RFC3339)
		}
	case filter.Text:
		if i := slices.IndexFunc(p.Values, func(known string) bool { return strings.EqualFold(known, value) }); i >= 0 {
			value = p.Values[i]
		}
	case filter.Switch:
		if value != "" && value != "true" {
			return &client.InvalidError{Message: fmt.Sprintf("%s: %.40q: want true, or leave it out", p.Name, value)}
		}
	case filter.Duration, filter.Label:
	}
	if value != "" {
		s.values.Add(p.Name, value)
	}
	return nil
}

// Any reports whether anything is looked for.
func (s search) Any() bool { return len(s.values) > 0 || s.Words != "" }

// Has returns the value of a filter; empty: it is not looked for by that.
func (s search) Has(name string) string { return s.values.Get(name) }

// With is the query of the same search with another cursor.
func (s search) With(cursor string) template.URL {
	query := url.Values{}
	for name, values := range s.values {
		query[name] = values
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return template.URL(query.Encode()) //nolint:gosec // it is encoded
}
