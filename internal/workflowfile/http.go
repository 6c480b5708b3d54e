package workflowfile

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
)

var (
	errMethod  = errors.New("a method must be one of " + strings.Join(makegood.HTTPMethods(), ", "))
	errURL     = errors.New("a url must be a string that is not empty")
	errHeaders = errors.New("headers must be an object of strings")
)

// httpRequest writes the request of the http agent, and checks of it what the workflow could not show.
func (r *request) httpRequest(data Data, value func(*expression) (any, error)) ([]byte, error) {
	fields := map[string]json.RawMessage{
		"method": json.RawMessage(`"POST"`), "headers": json.RawMessage(`{}`), "body": nil,
	}
	parts, err := r.with.members(value)
	if err != nil {
		return nil, err
	}
	maps.Copy(fields, parts)
	var method, url string
	if json.Unmarshal(fields["method"], &method) != nil || !slices.Contains(makegood.HTTPMethods(), method) {
		return nil, at("method", errMethod)
	}
	if json.Unmarshal(fields["url"], &url) != nil || url == "" {
		return nil, at("url", errURL)
	}
	if !stringsOnly(fields["headers"]) {
		return nil, at("headers", errHeaders)
	}
	if fields["body"] == nil {
		if method == "GET" || method == "HEAD" {
			delete(fields, "body")
		} else {
			fields["body"] = data.input()
		}
	}
	out := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), fields[name]...)
	}
	return append(out, '}'), nil
}

func stringsOnly(headers json.RawMessage) bool {
	var values map[string]any
	if json.Unmarshal(headers, &values) != nil || values == nil {
		return false
	}
	for _, v := range values {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

// members gives the members of a template that is an object.
func (t *template) members(value func(*expression) (any, error)) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if t.constant != nil {
		err := json.Unmarshal(t.constant, &members)
		return members, err
	}
	for _, f := range t.fields {
		out, err := f.value.append(nil, value)
		if err != nil {
			return nil, at(f.key, err)
		}
		members[f.key] = out
	}
	return members, nil
}
