package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/plain"
)

// decode reads the body of a request into the struct that into points to, strictly: one object, no
// key twice, none that the struct does not have, in exactly its spelling. An empty body is an empty
// object; null is a field that is not there.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if len(body) == 0 {
		return nil
	}
	body, err = canonical.JSON(body)
	if err != nil {
		return bad("the body is not JSON as it must be: %v", err)
	}
	return decodeObject(body, reflect.ValueOf(into).Elem(), "")
}

// decodeObject reads an object into a struct, and nested objects into nested structs. at is the object's name with a
// dot behind; the body's is empty.
func decodeObject(body []byte, target reflect.Value, at string) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return bad("%s must be one JSON object", cmp.Or(strings.TrimSuffix(at, "."), "the body"))
	}
	for _, f := range fieldsOf(target.Type()) {
		value, ok := given[f.name]
		delete(given, f.name)
		if !ok {
			continue
		}
		into := target.Field(f.index)
		if f.kind.Kind() == reflect.Struct && f.kind != reflect.TypeFor[time.Time]() {
			if err := decodeObject(value, into, at+f.name+"."); err != nil {
				return err
			}
			continue
		}
		if err := json.Unmarshal(value, into.Addr().Interface()); err != nil {
			return bad("%s%s: want %s", at, f.name, wanted(f.kind))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		return bad("there is no field %.40q; there are %s", at+name, strings.Join(names(target.Type()), ", "))
	}
	return nil
}

// field is a field of a struct that is written as JSON.
type field struct {
	name     string
	index    int
	kind     reflect.Type
	optional bool
}

// fieldsOf returns the fields of a struct in their order, those of embedded structs left to their own.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{name, i, f.Type, strings.Contains(rest, "omit")})
	}
	return fields
}

func names(t reflect.Type) []string {
	var all []string
	for _, f := range fieldsOf(t) {
		all = append(all, f.name)
	}
	return all
}

func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map:
		return "an object of texts"
	case t == reflect.TypeFor[time.Time]():
		return "a time as in RFC 3339, such as 2026-01-31T09:00:00Z"
	case t.Kind() == reflect.Int:
		return "a whole number"
	}
	return "a " + t.Kind().String()
}

// query reads the parameters of a request. It refuses one that is not in allowed, and one twice that is no label.
func query(r *http.Request, allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("the query cannot be read")
	}
	for name, given := range values {
		if !slices.Contains(allowed, name) {
			if meant := plain.Nearest(name, allowed); meant != "" {
				return nil, bad("unknown parameter %.40q: did you mean %q?", name, meant)
			}
			return nil, bad("unknown parameter %.40q; there are %s", name, strings.Join(allowed, ", "))
		}
		if len(given) > 1 && name != "label" {
			return nil, bad("the parameter %s is there twice", name)
		}
	}
	return values, nil
}
