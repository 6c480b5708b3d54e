package asl

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes is how large a definition may be; that is the limit of Amazon States Language, too.
	MaxBytes = 1 << 20
	// MaxStates is how many states a definition may have, those in branches too.
	MaxStates = 1000
	// maxErrors is how many mistakes are told at once.
	maxErrors = 20
	// maxStateName is how many characters the name of a state may have, as the language has it.
	maxStateName = 80
)

// machine is a state machine, or a branch of one.
type machine struct {
	pointer string
	startAt string
	states  []*state
	byName  map[string]*state
}

// from are the states that come one after the other from one on, and whether they go round: then each is there once.
func (m *machine) from(first *state) (row []*state, round bool) {
	for s := first; s != nil; s = m.byName[s.next] {
		if slices.Contains(row, s) {
			return row, true
		}
		row = append(row, s)
	}
	return row, false
}

// state is one state as it is written.
type state struct {
	name, kind, pointer string
	body                *node
	jsonata             bool
	next                string
	branches            []*machine
	// items are the states that do an item of a Map; nil: it is no Map, or has none.
	items *machine
}

// definition is what a file holds.
type definition struct {
	machine
	// name is what the file calls it; empty: it does not.
	name string
	body *node
}

// commonFields are those of every state; fieldsOf those of one type beside them.
var commonFields = []string{"Type", "Comment", "QueryLanguage", "InputPath", "OutputPath", "Output", "Assign"}

var fieldsOf = map[string][]string{
	"Task": {
		"Resource", "Next", "End", "Parameters", "Arguments", "ResultSelector", "ResultPath", "Retry", "Catch", "Credentials",
		"TimeoutSeconds", "TimeoutSecondsPath", "HeartbeatSeconds", "HeartbeatSecondsPath",
	},
	"Pass":     {"Next", "End", "Parameters", "Result", "ResultPath"},
	"Wait":     {"Next", "End", "Seconds", "SecondsPath", "Timestamp", "TimestampPath"},
	"Choice":   {"Choices", "Default"},
	"Succeed":  {},
	"Fail":     {"Error", "ErrorPath", "Cause", "CausePath"},
	"Parallel": {"Next", "End", "Branches", "Parameters", "Arguments", "ResultSelector", "ResultPath", "Retry", "Catch"},
	"Map": {
		"Next", "End", "Parameters", "ResultSelector", "ResultPath", "Retry", "Catch", "ItemProcessor", "Iterator", "ItemsPath", "Items",
		"ItemSelector", "ItemReader", "ItemBatcher", "ResultWriter", "Label", "MaxConcurrency", "MaxConcurrencyPath",
		"ToleratedFailurePercentage", "ToleratedFailurePercentagePath", "ToleratedFailureCount", "ToleratedFailureCountPath", "Arguments",
	},
}

// read reads a definition: of a file as it is, in the answer of describe-state-machine, or in a template. which names
// the resource of a template that has several; empty: it has one.
func read(source []byte, which string) (definition, error) {
	if len(source) > MaxBytes {
		return definition{}, Errors{{"", fmt.Sprintf("%d bytes, the limit is %d", len(source), MaxBytes)}}
	}
	if !utf8.Valid(source) {
		return definition{}, Errors{{"", "not UTF-8"}}
	}
	root, err := decode(source)
	if err != nil {
		return definition{}, toErrors(err)
	}
	body, name, pointer, err := unwrap(root, which)
	if err != nil {
		return definition{}, toErrors(err)
	}
	r := &reader{}
	d := definition{name: name, body: body}
	d.machine = *r.machine(body, pointer, body.textOf("QueryLanguage") == "JSONata", machineFields)
	if len(r.found) > 0 {
		return definition{}, r.found
	}
	return d, nil
}

// decode reads JSON, and what does not begin as JSON does, as YAML.
func decode(source []byte) (*node, error) {
	if text := bytes.TrimLeft(source, " \t\r\n"); len(text) == 0 || text[0] == '{' || text[0] == '[' {
		return decodeJSON(source)
	}
	return decodeYAML(source)
}

func toErrors(err error) error {
	if one, is := err.(Error); is {
		return Errors{one}
	}
	return err
}

var (
	machineFields = []string{"Comment", "StartAt", "States", "Version", "TimeoutSeconds", "QueryLanguage"}
	branchFields  = []string{"Comment", "StartAt", "States", "QueryLanguage", "ProcessorConfig"}
)

// reader holds a definition against the language, and notes what is wrong.
type reader struct {
	found  Errors
	states int
}

func (r *reader) wrong(pointer, format string, args ...any) {
	if len(r.found) < maxErrors {
		r.found = append(r.found, Error{clip(pointer), fmt.Sprintf(format, args...)})
	}
}

func (r *reader) machine(body *node, pointer string, jsonata bool, fields []string) *machine {
	m := &machine{pointer: pointer, byName: map[string]*state{}}
	if body == nil || body.kind != isObject {
		r.wrong(pointer, "want a state machine: an object with StartAt and States")
		return m
	}
	r.known(body, pointer, "a state machine", fields)
	states := body.get("States")
	if states == nil || states.kind != isObject || len(states.members) == 0 {
		r.wrong(below(pointer, "States"), "want an object with one state at least")
		return m
	}
	for _, s := range states.members {
		if r.states++; r.states > MaxStates {
			r.wrong(pointer, "more than %d states", MaxStates)
			return m
		}
		one := r.state(s.name, s.value, below(below(pointer, "States"), s.name), jsonata)
		m.states = append(m.states, one)
		m.byName[s.name] = one
	}
	m.startAt = body.textOf("StartAt")
	r.target(m, below(pointer, "StartAt"), m.startAt)
	for _, s := range m.states {
		r.transitions(m, s)
	}
	return m
}

// known refuses members that are not of the language. ASL lets none pass either.
func (r *reader) known(n *node, pointer, what string, fields []string) {
	for _, m := range n.members {
		if !slices.Contains(fields, m.name) {
			r.wrong(below(pointer, m.name), "%s has no field %q: known are %s", what, clip(m.name), strings.Join(fields, ", "))
		}
	}
}

func (r *reader) state(name string, body *node, pointer string, jsonata bool) *state {
	s := &state{name: name, pointer: pointer, body: body, jsonata: jsonata}
	if n := utf8.RuneCountInString(name); n == 0 || n > maxStateName {
		r.wrong(pointer, "the name of a state has %d characters: want 1 to %d", n, maxStateName)
	}
	if body.kind != isObject {
		r.wrong(pointer, "a state must be an object")
		return s
	}
	s.kind = body.textOf("Type")
	fields, known := fieldsOf[s.kind]
	if !known {
		r.wrong(below(pointer, "Type"), "%q is no type of state: want Task, Choice, Parallel, Wait, Pass, Succeed, Fail or Map", clip(s.kind))
		return s
	}
	r.known(body, pointer, "a "+s.kind, append(slices.Clone(commonFields), fields...))
	switch language := body.textOf("QueryLanguage"); language {
	case "":
	case "JSONata", "JSONPath":
		s.jsonata = language == "JSONata"
	default:
		r.wrong(below(pointer, "QueryLanguage"), "%q is no query language: want JSONPath or JSONata", clip(language))
	}
	s.next = body.textOf("Next")
	if s.kind == "Task" && body.textOf("Resource") == "" {
		r.wrong(below(pointer, "Resource"), "a Task must say its Resource, a text")
	}
	switch s.kind {
	case "Parallel":
		r.branches(s)
	case "Map":
		r.items(s)
	}
	return s
}

// items reads the machine of the items of a Map, by its name of today or of before.
func (r *reader) items(s *state) {
	for _, field := range []string{"ItemProcessor", "Iterator"} {
		if n := s.body.get(field); n.get("States") != nil && s.items == nil {
			s.items = r.machine(n, below(s.pointer, field), s.jsonata, branchFields)
		}
	}
}

func (r *reader) branches(s *state) {
	branches := s.body.get("Branches")
	if branches == nil || branches.kind != isList || len(branches.items) == 0 {
		r.wrong(below(s.pointer, "Branches"), "want a list of one branch at least")
		return
	}
	for i, b := range branches.items {
		s.branches = append(s.branches, r.machine(b, below(below(s.pointer, "Branches"), strconv.Itoa(i)), s.jsonata, branchFields))
	}
}

// transitions checks where a state leads to.
func (r *reader) transitions(m *machine, s *state) {
	end := s.body.get("End") != nil && s.body.get("End").text == "true"
	switch s.kind {
	case "Choice":
		r.choices(m, s)
	case "Succeed", "Fail", "":
	default:
		if _, known := fieldsOf[s.kind]; !known {
			return
		}
		if end == (s.next != "") {
			r.wrong(s.pointer, "a %s must say either Next or \"End\": true", s.kind)
		}
		if s.next != "" {
			r.target(m, below(s.pointer, "Next"), s.next)
		}
	}
	for _, list := range []string{"Retry", "Catch"} {
		r.handlers(m, s, list)
	}
}

func (r *reader) choices(m *machine, s *state) {
	choices := s.body.get("Choices")
	if choices == nil || choices.kind != isList || len(choices.items) == 0 {
		r.wrong(below(s.pointer, "Choices"), "want a list of one rule at least")
		return
	}
	for i, rule := range choices.items {
		place := below(below(s.pointer, "Choices"), strconv.Itoa(i))
		r.target(m, below(place, "Next"), rule.textOf("Next"))
	}
	if otherwise := s.body.get("Default"); otherwise != nil {
		r.target(m, below(s.pointer, "Default"), otherwise.text)
	}
}

// handlers checks the lists Retry and Catch.
func (r *reader) handlers(m *machine, s *state, list string) {
	handlers := s.body.get(list)
	if handlers == nil {
		return
	}
	if handlers.kind != isList {
		r.wrong(below(s.pointer, list), "want a list")
		return
	}
	for i, h := range handlers.items {
		place := below(below(s.pointer, list), strconv.Itoa(i))
		if errors := h.get("ErrorEquals"); errors == nil || errors.kind != isList || len(errors.items) == 0 {
			r.wrong(below(place, "ErrorEquals"), "want a list of one error at least")
		}
		if list == "Catch" {
			r.target(m, below(place, "Next"), h.textOf("Next"))
		}
	}
}

// target checks that a state is there.
func (r *reader) target(m *machine, pointer, name string) {
	if m.byName[name] != nil {
		return
	}
	if name == "" {
		r.wrong(pointer, "want the name of a state")
		return
	}
	r.wrong(pointer, "no state of this machine is called %q", clip(name))
}
