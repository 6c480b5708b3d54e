package makegood

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// HTTPMethods are the methods that an http step may use.
func HTTPMethods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} }

// request checks the with of an http step as far as it holds no expressions.
func (c *checker) request(path string, with json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(with, &fields) != nil || fields == nil {
		c.add(path, "an http step must say its request: with must be an object with a url")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch value := fields[name]; name {
		case "method":
			c.method(path+".method", value)
		case "headers":
			c.headers(path+".headers", value)
		case "url", "body":
		default:
			c.add(path+"."+name, "an http request has no %q: known are method, url, headers and body", name)
		}
	}
	c.url(path, fields["url"])
}

// text reads a JSON string; open reports whether it holds an expression, so that its value is not
// known yet.
func text(value json.RawMessage) (s string, open, ok bool) {
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", false, false
	}
	return s, strings.Contains(s, "${"), true
}

func (c *checker) method(path string, value json.RawMessage) {
	s, open, ok := text(value)
	if !ok || !open && !slices.Contains(HTTPMethods(), s) {
		c.add(path, "%s is not a method: want one of %s", value, strings.Join(HTTPMethods(), ", "))
	}
}

func (c *checker) headers(path string, value json.RawMessage) {
	if _, open, _ := text(value); open {
		return
	}
	var headers map[string]json.RawMessage
	if json.Unmarshal(value, &headers) != nil || headers == nil {
		c.add(path, "headers must be an object of strings")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if _, _, ok := text(headers[name]); !ok {
			c.add(path+"."+name, "a header must be a string: put it in quotes")
		}
	}
}

func (c *checker) url(path string, value json.RawMessage) {
	if value == nil {
		c.add(path, "an http request must have a url")
		return
	}
	s, open, ok := text(value)
	if !ok || s == "" {
		c.add(path+".url", "a url must be a string that is not empty")
		return
	}
	if open {
		return
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.add(path+".url", "%q is not a whole http or https address", s)
	}
}
