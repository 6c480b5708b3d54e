package asl

import (
	"fmt"
	"slices"
	"strings"
)

// The types of resources of a template that hold a definition.
var machineTypes = []string{"AWS::Serverless::StateMachine", "AWS::StepFunctions::StateMachine"}

// unwrap finds the definition in what a file holds, what it is called there, and where it stands.
func unwrap(root *node, which string) (body *node, name, pointer string, err error) {
	switch {
	case root.kind != isObject:
		return nil, "", "", Error{"", "want an object: a definition, the answer of describe-state-machine, or a template"}
	case root.get("States") != nil || root.get("StartAt") != nil:
		return root, "", "", nil
	case root.get("definition") != nil && root.get("definition").kind == isText:
		body, err := nested(root.get("definition"), "/definition")
		return body, root.textOf("name"), "/definition", err
	case root.get("Resources") != nil:
		return fromTemplate(root, which)
	}
	return nil, "", "", Error{"", "want StartAt and States, or a definition in the answer of describe-state-machine, or Resources of a template"}
}

// fromTemplate finds the one state machine of a template, or that of a name.
func fromTemplate(root *node, which string) (*node, string, string, error) {
	var names []string
	for _, r := range root.get("Resources").members {
		if slices.Contains(machineTypes, r.value.textOf("Type")) {
			names = append(names, r.name)
		}
	}
	switch {
	case which == "" && len(names) == 1:
		which = names[0]
	case len(names) == 0:
		return nil, "", "", Error{"/Resources", "none of them is a state machine"}
	case !slices.Contains(names, which):
		return nil, "", "", Error{"/Resources", fmt.Sprintf("which of them: %s?", strings.Join(names, ", "))}
	}
	at := below("/Resources/"+which, "Properties")
	properties := root.get("Resources").get(which).get("Properties")
	for _, field := range []string{"Definition", "DefinitionString"} {
		value := properties.get(field)
		if value == nil {
			continue
		}
		at = below(at, field)
		if value.kind == isObject && value.get("States") != nil {
			return value, which, at, nil
		}
		body, err := nested(value, at)
		return body, which, at, err
	}
	if uri := properties.textOf("DefinitionUri"); uri != "" {
		return nil, "", "", Error{below(at, "DefinitionUri"), fmt.Sprintf("the definition is in another file: import %s", uri)}
	}
	return nil, "", "", Error{at, "has no Definition and no DefinitionString"}
}

// nested reads a definition that is written as a text, also in Fn::Sub.
func nested(value *node, pointer string) (*node, error) {
	if sub := value.get("Fn::Sub"); sub != nil {
		value = sub
		if sub.kind == isList && len(sub.items) > 0 {
			value = sub.items[0]
		}
	}
	if join := value.get("Fn::Join"); join != nil && len(join.items) == 2 {
		value = joinedParts(join.items[0].text, join.items[1])
	}
	if value.kind != isText {
		return nil, Error{pointer, "want a definition written as a text"}
	}
	body, err := decodeJSON([]byte(value.text))
	if one, is := err.(Error); is {
		return nil, Error{pointer + one.Pointer, one.Message}
	}
	if err == nil && body.kind != isObject {
		return nil, Error{pointer, "want an object with StartAt and States"}
	}
	return body, err
}

// joinedParts is what Fn::Join makes of texts; what a template would put in stands there as ${NAME}.
func joinedParts(between string, parts *node) *node {
	texts := make([]string, len(parts.items))
	for i, part := range parts.items {
		texts[i] = part.text
		if part.kind == isObject && len(part.members) == 1 {
			name := part.members[0].value
			if name.kind == isList && len(name.items) > 0 {
				name = name.items[0]
			}
			texts[i] = "${" + name.text + "}"
		}
	}
	return &node{kind: isText, text: strings.Join(texts, between)}
}
