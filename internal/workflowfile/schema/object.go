package main

import (
	"fmt"
	"reflect"
	"strings"
)

// object is the schema of a Go type with these fields. It panics where they are not those of the
// type: then a field was added, and the schema does not know of it.
func object(of any, properties map[string]*schema, required ...string) *schema {
	names := fields(reflect.TypeOf(of))
	for _, name := range names {
		if properties[name] == nil {
			panic(fmt.Sprintf("schema: %T has a field %q, which is not described here", of, name))
		}
	}
	if len(names) != len(properties) {
		panic(fmt.Sprintf("schema: %T has the fields %q; here are %d", of, names, len(properties)))
	}
	return closed(properties, required...)
}

// closed describes an object that has these properties and no others.
func closed(properties map[string]*schema, required ...string) *schema {
	others := false
	return &schema{Type: "object", Properties: properties, Required: required, Closed: &others}
}

// fields are the names that a type's fields have in a workflow file, which are those that they have
// in JSON but for three: a file says exclusive where the type says shared, an undo that is none is no
// object, and needs says whether any of them suffices.
func fields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch name {
		case "none", "any":
			continue
		case "shared":
			name = "exclusive"
		}
		names = append(names, name)
	}
	return names
}
