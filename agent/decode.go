package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// decoder reads a JSON value; errors call the value what.
type decoder func(what string, from json.RawMessage, into any) error

// DecodeStrict reads a task's input into the value that into points at, for a Handler that is not an Agent. It refuses
// fields that into does not have. Its error is final, says that no effect was applied, and names the field. A missing
// input reads as null.
func DecodeStrict(input json.RawMessage, into any) error {
	return decodeJSON("input", input, into, true)
}

func decodeJSON(what string, from json.RawMessage, into any, strict bool) error {
	if len(bytes.TrimSpace(from)) == 0 {
		from = json.RawMessage("null")
	}
	d := json.NewDecoder(bytes.NewReader(from))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return refuse("%s", describe(what, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse("%s: more text follows the JSON value", what)
	}
	return nil
}

// describe names the wrong field as the author of a workflow knows it, not as Go does.
func describe(what string, err error) string {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return fmt.Sprintf("%s: %s", what, strings.TrimPrefix(err.Error(), "json: "))
	}
	if mismatch.Field != "" {
		what += "." + mismatch.Field
	}
	return fmt.Sprintf("%s: is a JSON %s, want %s", what, mismatch.Value, wanted(mismatch.Type))
}

// wanted names, in words of JSON, the values that a Go type is read from.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number (%s)", t.Kind())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number, not negative (%s)", t.Kind())
	default:
		return t.String()
	}
}
