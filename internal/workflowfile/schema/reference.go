package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// referenceFile is where the page about the fields is, from this folder.
const referenceFile = "../../../docs/reference/workflow-file.md"

// reference writes the schema as a page: a table for each object.
func reference(s *workflowfile.Schema) []byte {
	var page bytes.Buffer
	page.WriteString("# Every field of a workflow file\n\nGenerated from the same code as [workflow.schema.json](../workflow.schema.json), which editors read, by `go generate ./internal/workflowfile/schema`.\n" +
		"[The workflow file](../workflow-file.md) says how they work together. A field that is not here is refused.\n\n" +
		"A duration is written as `500ms`, `30s`, `1h30m` or `3d`; an expression stands between `${` and `}`.\n")
	tableOf(&page, "workflow", s)
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		tableOf(&page, name, s.Defs[name])
	}
	return page.Bytes()
}

func tableOf(page *bytes.Buffer, name string, s *workflowfile.Schema) {
	fmt.Fprintf(page, "\n## %s\n\n| field | is | default | |\n|---|---|---|---|\n", name)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		must := ""
		if slices.Contains(s.Required, field) {
			must = ", required"
		}
		fmt.Fprintf(page, "| `%s` | %s%s | %s | %s |\n", field, kindOf(p), must, defaultOf(p), cell(about(p)))
	}
}

// kindOf says in a few words what a value must be.
func kindOf(s *workflowfile.Schema) string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, workflowfile.Definitions)
		return "[" + name + "](#" + name + ")"
	case s.Const != "":
		return "`" + s.Const + "`"
	case len(s.OneOf) > 0:
		var kinds []string
		for _, one := range s.OneOf {
			kinds = append(kinds, kindOf(one))
		}
		return strings.Join(kinds, " or ")
	case s.Type == "array" && s.Items != nil:
		return "list of " + kindOf(s.Items)
	case s.Type == "object" && len(s.Properties) > 0:
		return "object of `" + strings.Join(slices.Sorted(maps.Keys(s.Properties)), "`, `") + "`"
	case s.Type == "integer" && s.Maximum > 0:
		return fmt.Sprintf("integer, %d to %d", s.Minimum, s.Maximum)
	case s.Pattern == workflowfile.DurationPattern:
		return "duration"
	case s.Type == "":
		return "anything"
	default:
		return s.Type
	}
}

// about is the description of a value; for several kinds, of each.
func about(s *workflowfile.Schema) string {
	if s.Description != "" || len(s.OneOf) == 0 {
		return s.Description
	}
	var all []string
	for _, one := range s.OneOf {
		all = append(all, about(one))
		for _, name := range slices.Sorted(maps.Keys(one.Properties)) {
			all = append(all, name+": "+about(one.Properties[name]))
		}
	}
	return strings.Join(slices.DeleteFunc(all, func(text string) bool { return text == "" }), " ")
}

func defaultOf(s *workflowfile.Schema) string {
	if s.Default == nil {
		return ""
	}
	return fmt.Sprintf("`%v`", s.Default)
}

// cell is a text as it can stand in a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}
