package httprules

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Request writes the request that the http agent is given: the values of the members of a with, and what they leave
// out. Without a body it is input, but for GET and HEAD. It gives the first thing that Check could not see to be wrong,
// because an expression made it. A url that is known later, because a secret belongs into it, may be empty.
func Request(values map[string]json.RawMessage, input json.RawMessage, urlLater bool) (json.RawMessage, *Problem) {
	fields := map[string]json.RawMessage{
		"method": json.RawMessage(`"POST"`), "headers": json.RawMessage(`{}`), "body": nil,
	}
	maps.Copy(fields, values)
	var method, url string
	if json.Unmarshal(fields["method"], &method) != nil || !slices.Contains(Methods(), method) {
		return nil, &Problem{"method", "a method must be one of " + strings.Join(Methods(), ", ")}
	}
	if json.Unmarshal(fields["url"], &url) != nil || url == "" && !urlLater {
		return nil, &Problem{"url", "a url must be a string that is not empty"}
	}
	if !stringsOnly(fields["headers"]) {
		return nil, &Problem{"headers", "headers must be an object of strings"}
	}
	if fields["body"] == nil {
		if method == "GET" || method == "HEAD" {
			delete(fields, "body")
		} else {
			fields["body"] = input
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
