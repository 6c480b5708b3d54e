package workflowfile

import (
	"encoding/json"
	"errors"

	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
)

// httpRequest writes the request of the http agent.
func (r *request) httpRequest(data Data, value func(*expression) (any, error)) ([]byte, error) {
	values, err := r.with.members(value)
	if err != nil {
		return nil, err
	}
	request, wrong := httprules.Request(values, data.input())
	if wrong != nil {
		return nil, at(wrong.Path, errors.New(wrong.Message))
	}
	return request, nil
}

// members returns the members of a template that is an object.
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
