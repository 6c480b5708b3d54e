// Package httprules holds what the with of an http step must be: as a workflow says it, and once its expressions have
// given their values. It sends nothing, and knows neither expressions nor net/http: what reads workflows needs the
// rules of the http agent, and not the agent.
package httprules

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Methods are the methods that an http step may use.
func Methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} }

// Problem is something that is wrong with a request.
type Problem struct {
	// Path says where in the with: "headers.X-A"; empty: the with as a whole.
	Path string
	// Message says what is wrong, and what is wanted.
	Message string
}

// problems collects what is wrong with one with.
type problems []Problem

func (all *problems) add(path, format string, args ...any) {
	*all = append(*all, Problem{path, fmt.Sprintf(format, args...)})
}

// Check lists what is wrong with a with of a workflow, as far as it holds no expressions; none: nothing.
func Check(with json.RawMessage) []Problem {
	var all problems
	var fields map[string]json.RawMessage
	if json.Unmarshal(with, &fields) != nil || fields == nil {
		all.add("", "an http step must say its request: with must be an object with a url")
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch value := fields[name]; name {
		case "method":
			all.method(value)
		case "headers":
			all.headers(value)
		case "url", "body":
		default:
			all.add(name, "an http request has no %q: known are method, url, headers and body", name)
		}
	}
	all.url(fields["url"])
	return all
}

// text reads a JSON string; open reports whether it holds an expression, so that its value is not known yet.
func text(value json.RawMessage) (s string, open, ok bool) {
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", false, false
	}
	return s, strings.Contains(s, "${"), true
}

func (all *problems) method(value json.RawMessage) {
	s, open, ok := text(value)
	if !ok || !open && !slices.Contains(Methods(), s) {
		all.add("method", "%s is not a method: want one of %s", value, strings.Join(Methods(), ", "))
	}
}

func (all *problems) headers(value json.RawMessage) {
	if _, open, _ := text(value); open {
		return
	}
	var headers map[string]json.RawMessage
	if json.Unmarshal(value, &headers) != nil || headers == nil {
		all.add("headers", "headers must be an object of strings")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if _, _, ok := text(headers[name]); !ok {
			all.add("headers."+name, "a header must be a string: put it in quotes")
		}
	}
}

func (all *problems) url(value json.RawMessage) {
	if value == nil {
		all.add("", "an http request must have a url")
		return
	}
	s, open, ok := text(value)
	if !ok || s == "" {
		all.add("url", "a url must be a string that is not empty")
		return
	}
	if open {
		return
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		all.add("url", "%q is not a whole http or https address", s)
	}
}
