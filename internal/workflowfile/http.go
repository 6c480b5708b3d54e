package workflowfile

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
)

// httpRequest writes the request of the http agent.
func (r *request) httpRequest(data Data, f *filling) ([]byte, error) {
	values, err := r.with.members(f)
	if err != nil {
		return nil, err
	}
	later := slices.ContainsFunc(f.secrets, func(s makegood.TaskSecret) bool { return s.Path == "/url" })
	request, wrong := httprules.Request(values, data.input(), later)
	if wrong != nil {
		return nil, at(wrong.Path, errors.New(wrong.Message))
	}
	return request, nil
}

// members returns the members of a template that is an object.
func (t *template) members(f *filling) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if t.constant != nil {
		err := json.Unmarshal(t.constant, &members)
		return members, err
	}
	for _, field := range t.fields {
		err := f.within(field.key, func() (err error) { members[field.key], err = field.value.append(nil, f); return err })
		if err != nil {
			return nil, at(field.key, err)
		}
	}
	return members, nil
}
