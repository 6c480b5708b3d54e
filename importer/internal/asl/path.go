package asl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// segment is one step of a JSONPath.
type segment struct {
	// name is that of a member; empty with an index, a slice or all.
	name   string
	member bool
	index  int
	// all: every element, [*]; slice: jq of a part of a list.
	all   bool
	slice string
}

// parsePath reads a JSONPath behind its $: members, elements, [*] and slices. What else there is has no counterpart here.
func parsePath(text string) ([]segment, error) {
	var path []segment
	for rest := text; rest != ""; {
		var s segment
		var err error
		switch {
		case strings.HasPrefix(rest, ".."):
			return nil, fmt.Errorf("the path %s: jq has no match for .. (a search at any depth)", clip("$"+text))
		case strings.HasPrefix(rest, ".*"):
			s, rest = segment{all: true}, rest[2:]
		case strings.HasPrefix(rest, "."):
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			s, rest = segment{name: rest[1 : 1+end], member: true}, rest[1+end:]
			if s.name == "" || strings.ContainsAny(s.name, "()@ ") {
				return nil, fmt.Errorf("the path %s cannot be read at %q", clip("$"+text), clip(s.name))
			}
		case strings.HasPrefix(rest, "["):
			s, rest, err = bracket(rest)
			if err != nil {
				return nil, fmt.Errorf("the path %s: %w", clip("$"+text), err)
			}
		default:
			return nil, fmt.Errorf("the path %s cannot be read at %q", clip("$"+text), clip(rest))
		}
		path = append(path, s)
	}
	return path, nil
}

// bracket reads [...] at the start of text.
func bracket(text string) (s segment, rest string, err error) {
	if len(text) > 1 && (text[1] == '\'' || text[1] == '"') {
		end := strings.Index(text[2:], text[1:2]+"]")
		if end < 0 {
			return s, "", errors.New("a name in brackets has no end")
		}
		return segment{name: text[2 : 2+end], member: true}, text[2+end+2:], nil
	}
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return s, "", errors.New("a bracket has no end")
	}
	inside, rest := strings.TrimSpace(text[1:end]), text[end+1:]
	if inside == "*" {
		return segment{all: true}, rest, nil
	}
	if strings.HasPrefix(inside, "?") {
		return s, "", errors.New("a filter [?(...)] is not translated")
	}
	if n, err := strconv.Atoi(inside); err == nil {
		return segment{index: n}, rest, nil
	}
	from, to, is := strings.Cut(inside, ":")
	if _, err := strconv.Atoi(from + to); !is || err != nil {
		return s, "", fmt.Errorf("[%s] is not translated", clip(inside))
	}
	return segment{slice: "[" + from + ":" + to + "]"}, rest, nil
}

// follow returns what lies at the end of a path from v.
func (p *pool) follow(v *value, path []segment) *value {
	for i, s := range path {
		switch {
		case s.member:
			v = p.member(v, s.name)
		case s.all:
			// From here on there are many: what follows is read of each.
			return p.jq("[%s[]?%s]", p.operand(v), p.rest(path[i+1:]))
		case s.slice != "":
			v = p.jq("%s%s", p.operand(v), s.slice)
		default:
			v = p.index(v, s.index)
		}
	}
	return v
}

// rest writes the steps behind one that gives many.
func (p *pool) rest(path []segment) string {
	var out strings.Builder
	for _, s := range path {
		switch {
		case s.member:
			out.WriteString(" | " + p.operand(p.member(p.path("."), s.name)))
		case s.all:
			out.WriteString(" | .[]?")
		case s.slice != "":
			out.WriteString(" | ." + s.slice)
		default:
			fmt.Fprintf(&out, " | .[%d]", s.index)
		}
	}
	return strings.ReplaceAll(out.String(), "..", ".")
}

// referencePath reads a path that says where something is put: members only.
func referencePath(text string) ([]string, error) {
	if !strings.HasPrefix(text, "$") || strings.HasPrefix(text, "$$") {
		return nil, fmt.Errorf("%q says no place in the input", clip(text))
	}
	path, err := parsePath(text[1:])
	if err != nil {
		return nil, err
	}
	names := make([]string, len(path))
	for i, s := range path {
		if !s.member {
			return nil, fmt.Errorf("%s: only members can be set here, no elements of lists", clip(text))
		}
		names[i] = s.name
	}
	return names, nil
}

// sight is what the paths and expressions of a state see.
type sight struct {
	*pool
	// input is $, or $states.input; variables are those that were assigned.
	input     *value
	variables map[string]*value
	// result is what the task gave, and errorOutput why it failed; nil: neither is there.
	result, errorOutput *value
	// state is the name of the state, and machine that of the state machine.
	state, machine string
	// random: what is asked for differs each time, so an expression cannot give it.
	notes *[]string
	// item begins the path of the item of a Map, where there is one, and execution is that of the execution's input.
	item, execution string
}

// note says something once of the state.
func (s sight) note(text string) {
	for _, n := range *s.notes {
		if n == text {
			return
		}
	}
	*s.notes = append(*s.notes, text)
}

// errToken: the token of a task is asked for. Who does the step has it; no input can hold it.
var errToken = errors.New("the task's token stands in no input: the agent has it, as Completion of agent.TaskOf(ctx)")

// at evaluates a path, a variable, or a call of an intrinsic function.
func (s sight) at(text string) (*value, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "$$"):
		return s.context(strings.TrimPrefix(text, "$$"))
	case text == "$" || strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$["):
		return s.along(s.input, text[1:])
	case strings.HasPrefix(text, "$"):
		v, rest, err := s.variable(text[1:])
		if err != nil {
			return nil, err
		}
		return s.along(v, rest)
	case strings.HasPrefix(text, "States."):
		return s.intrinsic(text)
	}
	return nil, fmt.Errorf("%q is neither a path nor a function", clip(text))
}

// along evaluates a path from a value on.
func (s sight) along(v *value, text string) (*value, error) {
	path, err := parsePath(text)
	if err != nil {
		return nil, err
	}
	return s.follow(v, path), nil
}

// variable is the variable that a path begins with, and the rest of the path.
func (s sight) variable(text string) (v *value, rest string, err error) {
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	v, known := s.variables[text[:end]]
	if !known {
		err = fmt.Errorf("the variable $%s was not assigned on the way here", clip(text[:end]))
	}
	return v, text[end:], err
}

// context evaluates a path of the context object.
func (s sight) context(text string) (*value, error) {
	below := func(place string) bool {
		return text == place || strings.HasPrefix(text, place+".") || strings.HasPrefix(text, place+"[")
	}
	switch {
	case text == ".Execution.Id" || text == ".Execution.Name":
		s.note("$$" + text + " is the job's id here, which is no ARN")
		return s.path(".job.id"), nil
	case text == ".Execution.StartTime":
		return s.path(".job.startedAt"), nil
	case below(".Execution.Input"):
		return s.along(s.path(s.execution), strings.TrimPrefix(text, ".Execution.Input"))
	case s.item != "" && below(".Map.Item.Value"):
		return s.along(s.path(s.item+"item"), strings.TrimPrefix(text, ".Map.Item.Value"))
	case s.item != "" && text == ".Map.Item.Index":
		return s.path(s.item + "index"), nil
	case text == ".StateMachine.Name":
		return s.text(s.machine), nil
	case text == ".State.Name":
		return s.text(s.state), nil
	case text == ".Task.Token":
		return nil, errToken
	}
	return nil, fmt.Errorf("$$%s of the context object is not known to an expression here", clip(text))
}

// template evaluates a payload template: members whose names end in .$ are paths or functions.
func (s sight) template(n *node) (*value, error) {
	switch n.kind {
	case isList:
		parts := make([]*value, len(n.items))
		for i, item := range n.items {
			part, err := s.template(item)
			if err != nil {
				return nil, err
			}
			parts[i] = part
		}
		return s.list(parts), nil
	case isObject:
		return s.objectTemplate(n)
	default:
		return s.node(n), nil
	}
}

func (s sight) objectTemplate(n *node) (*value, error) {
	var names []string
	var parts []*value
	for _, m := range n.members {
		name, dynamic := strings.CutSuffix(m.name, ".$")
		var part *value
		var err error
		switch {
		case !dynamic:
			part, err = s.template(m.value)
		case m.value.kind != isText:
			err = fmt.Errorf("%q must be a text: a path or a function", clip(m.name))
		default:
			part, err = s.at(m.value.text)
		}
		if errors.Is(err, errToken) {
			s.note(errToken.Error() + "; " + name + " is left out")
			continue
		}
		if err == nil && slices.Contains(names, name) {
			err = fmt.Errorf("%q is there with .$ and without", clip(name))
		}
		if err != nil {
			return nil, err
		}
		names, parts = append(names, name), append(parts, part)
	}
	return s.object(names, parts), nil
}
