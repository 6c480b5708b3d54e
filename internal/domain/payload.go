package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// errTooManyPayloads: a value refers to more payloads than the limit allows.
var errTooManyPayloads = fmt.Errorf("it refers to more than %d payloads", limits.MaxPayloadRefs)

// FindPayloads returns the payloads that a JSON value refers to, each once, in the order of the text of its hash. An
// object with a member PayloadMark that is no reference is an error, because no other value may look like a reference,
// and so are more than MaxPayloadRefs.
func FindPayloads(value json.RawMessage) ([]makegood.Payload, error) {
	// Almost no value has any, and none of those is decoded; \u may hide the mark.
	if !bytes.Contains(value, []byte(limits.PayloadMark)) && !bytes.Contains(value, []byte(`\u`)) {
		return nil, nil
	}
	var decoded any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		return nil, err
	}
	found := map[makegood.Payload]bool{}
	if err := findIn(decoded, "", found); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b makegood.Payload) int {
		return strings.Compare(a.SHA256+a.By+a.Type, b.SHA256+b.By+b.Type)
	}), nil
}

// findIn adds the payloads that a decoded value at a path refers to.
func findIn(value any, path string, found map[makegood.Payload]bool) error {
	switch value := value.(type) {
	case map[string]any:
		if _, marked := value[limits.PayloadMark]; marked {
			return findOne(value, path, found)
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := findIn(value[name], path+"."+name, found); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range value {
			if err := findIn(item, fmt.Sprintf("%s[%d]", path, i), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// findOne adds the payload that an object with a PayloadMark refers to.
func findOne(object map[string]any, path string, found map[makegood.Payload]bool) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var p makegood.Payload
	if err := json.Unmarshal(text, &p); err != nil {
		if path == "" {
			return err
		}
		return fmt.Errorf("at %.200s: %w", path, err)
	}
	if p == (makegood.Payload{}) {
		return errors.New(limits.PayloadMark + " is null")
	}
	if found[p] = true; len(found) > limits.MaxPayloadRefs {
		return errTooManyPayloads
	}
	return nil
}

// WholePayload returns the reference, and reports whether a JSON value is only a reference.
func WholePayload(value json.RawMessage) (p makegood.Payload, whole bool) {
	if !bytes.Contains(value, []byte(limits.PayloadMark)) {
		return makegood.Payload{}, false
	}
	err := json.Unmarshal(value, &p)
	return p, err == nil && p != (makegood.Payload{})
}
