package main

import (
	"fmt"
	"reflect"
	"strings"
)

// object is the schema of a Go type with these fields. It panics if they differ from those of the type, which happens
// when a field is added without its schema.
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

// fields are the names of a type's fields in a workflow file, which are their JSON names but for three: a file says
// exclusive where the type says shared, an absent undo is no object, and needs says whether any one suffices.
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
