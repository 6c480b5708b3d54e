// Package secret puts secrets into the input of a task, and removes them from its texts and outputs. It keeps the
// values of a source for a short time, so that an agent with a thousand tasks does not ask a thousand times; it never
// logs, stores or sends a value.
package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Fill returns the task with its secrets in its input, and their Hider: a copy, if the task has secrets. Every error
// names the secret that could not be put in, before any work has begun: it is final, except for a source that fails.
func Fill(ctx context.Context, task *makegood.Task, source agent.Secrets) (*makegood.Task, Hider, error) {
	if len(task.Secrets) == 0 {
		return task, Hider{}, nil
	}
	values, err := valuesOf(ctx, task.Secrets, source)
	if err != nil {
		return task, Hider{}, agent.NotApplied(err)
	}
	input, err := put(task.Input, task.Secrets, values)
	if err != nil {
		return task, Hider{}, agent.Final(agent.NotApplied(err))
	}
	filled := *task
	filled.Input, filled.Secrets = input, nil
	return &filled, newHider(values), nil
}

// Marked returns an input with "[secret NAME]" in the places of its secrets, for people to see: no secret is asked for.
func Marked(input json.RawMessage, secrets []makegood.TaskSecret) (json.RawMessage, error) {
	if len(secrets) == 0 {
		return input, nil
	}
	marks := make(map[string]string)
	for _, s := range secrets {
		marks[s.Name] = "[secret " + s.Name + "]"
	}
	return put(input, secrets, marks)
}

// valuesOf asks for each secret once.
func valuesOf(ctx context.Context, secrets []makegood.TaskSecret, source agent.Secrets) (map[string]string, error) {
	values := make(map[string]string)
	for _, s := range secrets {
		if _, known := values[s.Name]; known {
			continue
		}
		value, err := source(ctx, s.Name)
		switch {
		case errors.Is(err, agent.ErrNoSecret):
			return nil, agent.Final(fmt.Errorf("secret %q: %w", s.Name, err))
		case err != nil:
			return nil, fmt.Errorf("secret %q: %w", s.Name, err)
		case len(value) > limits.MaxSecretBytes:
			return nil, agent.Final(fmt.Errorf("secret %q has %d bytes, the limit is %d", s.Name, len(value), limits.MaxSecretBytes))
		case !utf8.ValidString(value):
			return nil, agent.Final(fmt.Errorf("secret %q is not UTF-8", s.Name))
		}
		values[s.Name] = value
	}
	return values, nil
}

// put writes the values to their places in an input. Those of one text count their characters in it as it came.
func put(input json.RawMessage, secrets []makegood.TaskSecret, values map[string]string) (json.RawMessage, error) {
	root, err := decode(input)
	if err != nil {
		return nil, fmt.Errorf("the input, which secrets belong to: %w", err)
	}
	for begin := 0; begin < len(secrets); {
		end := begin
		for end < len(secrets) && secrets[end].Path == secrets[begin].Path {
			end++
		}
		one := secrets[begin:end]
		root, err = at(root, tokens(one[0].Path), func(text string) (string, error) { return splice(text, one, values) })
		if err != nil {
			return nil, fmt.Errorf("secret %q at %q of the input: %w", one[0].Name, one[0].Path, err)
		}
		begin = end
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		return nil, errors.New("the input cannot be written with its secrets")
	}
	filled := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(filled) > makegood.MaxPayloadBytes {
		return nil, fmt.Errorf("the input has %d bytes with its secrets, the limit is %d", len(filled), makegood.MaxPayloadBytes)
	}
	return filled, nil
}

// decode reads a value, with its numbers as they are written.
func decode(text []byte) (root any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return nil, errors.New("not JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text follows the JSON")
	}
	return root, nil
}

// tokens takes a JSON pointer apart.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	all := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return all
}

// at changes the text at a place within a value, and returns the value.
func at(value any, place []string, change func(string) (string, error)) (any, error) {
	if len(place) == 0 {
		text, is := value.(string)
		if !is {
			return nil, errors.New("no text is there")
		}
		return change(text)
	}
	switch v := value.(type) {
	case map[string]any:
		inner, there := v[place[0]]
		if !there {
			return nil, errors.New("there is no value")
		}
		changed, err := at(inner, place[1:], change)
		v[place[0]] = changed
		return v, err
	case []any:
		i, err := strconv.Atoi(place[0])
		if err != nil || i < 0 || i >= len(v) {
			return nil, errors.New("there is no value")
		}
		v[i], err = at(v[i], place[1:], change)
		return v, err
	default:
		return nil, errors.New("there is no value")
	}
}

// splice puts values between the characters of a text.
func splice(text string, secrets []makegood.TaskSecret, values map[string]string) (string, error) {
	var out strings.Builder
	characters := []rune(text)
	done := 0
	for _, s := range secrets {
		if s.At < done || s.At > len(characters) {
			return "", fmt.Errorf("it belongs behind character %d of a text of %d", s.At, len(characters))
		}
		out.WriteString(string(characters[done:s.At]))
		out.WriteString(values[s.Name])
		done = s.At
	}
	out.WriteString(string(characters[done:]))
	return out.String(), nil
}
