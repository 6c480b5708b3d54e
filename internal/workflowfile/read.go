package workflowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
)

// reader makes a workflow of YAML nodes and notes where each thing stands.
type reader struct{ *check }

// readYAML reads a workflow file as far as possible, and adds its errors to c. ok is false where the file has no
// workflow at all.
func readYAML(c *check, source []byte) (w makegood.Workflow, ok bool) {
	c.lines = map[string]int{"": 1}
	r := reader{c}
	root := r.document(source)
	if root == nil {
		return w, false
	}
	if root = r.expand(root); root == nil {
		return w, false
	}
	return r.workflow(root), root.Kind == yaml.MappingNode
}

// document returns the one document of a file, or nil, and adds the reason.
func (r reader) document(source []byte) *yaml.Node {
	if len(source) > MaxSourceBytes {
		r.add("", "the file has %d bytes, the limit is %d", len(source), MaxSourceBytes)
		return nil
	}
	if !utf8.Valid(source) {
		r.lines[""] = 1 + bytes.Count(source[:firstInvalid(source)], []byte("\n"))
		r.add("", "not UTF-8")
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(source))
	root, err := next(d)
	if errors.Is(err, io.EOF) {
		r.add("", "the file is empty: want a workflow")
		return nil
	}
	if err != nil {
		r.notYAML(err, source)
		return nil
	}
	switch second, err := next(d); {
	case err == nil:
		r.lines[""] = second.Line
		r.add("", "a second document begins here: want one workflow a file")
		return nil
	case !errors.Is(err, io.EOF):
		r.notYAML(err, source)
		return nil
	}
	return root.Content[0]
}

func firstInvalid(source []byte) int {
	at := 0
	for at < len(source) {
		c, size := utf8.DecodeRune(source[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func next(d *yaml.Decoder) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	root = &yaml.Node{}
	err = d.Decode(root)
	return root, err
}

// notYAML adds the parser's errors, at their lines.
func (r reader) notYAML(err error, source []byte) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			r.lines[""], message = line, after
		}
		if strings.HasPrefix(after, "did not find expected") {
			// The parser counts these lines from 0, and others from 1.
			r.lines[""]++
		}
	}
	lines := strings.Split(string(source), "\n")
	if line := min(r.lines[""], len(lines)); strings.HasPrefix(strings.TrimLeft(lines[line-1], " "), "\t") {
		message = "a tab cannot indent YAML: use spaces"
	}
	r.add("", "not YAML: %s", message)
}

// field is a field that a mapping may have.
type field struct {
	name string
	read func(n *yaml.Node, path string)
}

func (r reader) workflow(n *yaml.Node) (w makegood.Workflow) {
	var d defaults
	r.mapping(n, "", "a workflow", []field{
		{"name", func(n *yaml.Node, path string) { w.Name = r.text(n, path) }},
		{"timeout", func(n *yaml.Node, path string) { w.Timeout = r.duration(n, path) }},
		{"expect", func(n *yaml.Node, path string) { w.Expect = r.duration(n, path) }},
		{"onFailure", func(n *yaml.Node, path string) { w.OnFailure = r.onFailure(n, path) }},
		{"input", func(n *yaml.Node, path string) { w.Input = r.inputSchema(n, path) }},
		{"defaults", func(n *yaml.Node, path string) { d = r.defaults(n, path) }},
		{"steps", func(n *yaml.Node, path string) { w.Steps = r.steps(n, path) }},
		{"schedules", func(n *yaml.Node, path string) { r.check.schedules = r.schedules(n, path) }},
	})
	for i := range w.Steps {
		d.apply(&w.Steps[i])
	}
	return w
}

func (r reader) schedules(n *yaml.Node, path string) []makegood.Schedule {
	schedules := []makegood.Schedule{}
	r.list(n, path, "a list", func(n *yaml.Node, path string) {
		schedules = append(schedules, r.schedule(n, path))
	})
	return schedules
}

func (r reader) schedule(n *yaml.Node, path string) (s makegood.Schedule) {
	r.mapping(n, path, "a schedule", []field{
		{"name", func(n *yaml.Node, path string) { s.Name = r.text(n, path) }},
		{"cron", func(n *yaml.Node, path string) { s.Cron = r.text(n, path) }},
		{"every", func(n *yaml.Node, path string) { s.Every = r.duration(n, path) }},
		{"zone", func(n *yaml.Node, path string) { s.Zone = r.text(n, path) }},
		{"input", func(n *yaml.Node, path string) { s.Input = r.with(n, path) }},
		{"missed", func(n *yaml.Node, path string) { s.Missed = makegood.Missed(r.text(n, path)) }},
		{"atMost", func(n *yaml.Node, path string) { s.AtMost = r.whole(n, path) }},
		{"overlap", func(n *yaml.Node, path string) { s.Overlap = makegood.Overlap(r.text(n, path)) }},
	})
	return s
}

// whole reads a whole number.
func (r reader) whole(n *yaml.Node, path string) int {
	if !r.plain(n, path) {
		return 0
	}
	number, err := strconv.Atoi(n.Value)
	if kindOf(n) != kindNumber || err != nil {
		r.wrong(path, "%s must be a whole number, got %s", last(path), describe(n))
	}
	return number
}

func (r reader) onFailure(n *yaml.Node, path string) (o makegood.OnFailure) {
	text := r.text(n, path)
	if text == "" {
		return o
	}
	if err := o.UnmarshalText([]byte(text)); err != nil {
		r.wrong(path, "onFailure: %v", err)
	}
	return o
}

func (r reader) steps(n *yaml.Node, path string) []makegood.Step {
	var steps []makegood.Step
	r.list(n, path, "a list", func(n *yaml.Node, path string) {
		steps = append(steps, r.step(n, path))
	})
	return steps
}

func (r reader) step(n *yaml.Node, path string) (s makegood.Step) {
	r.mapping(n, path, "a step", []field{
		{"name", func(n *yaml.Node, path string) { s.Name = r.text(n, path) }},
		{"agent", func(n *yaml.Node, path string) { s.Agent = r.text(n, path) }},
		{"action", func(n *yaml.Node, path string) { s.Action = r.text(n, path) }},
		{"needs", func(n *yaml.Node, path string) { s.Needs, s.Any = r.needs(n, path) }},
		{"only", func(n *yaml.Node, path string) { s.Only = r.text(n, path) }},
		{"when", func(n *yaml.Node, path string) { s.When = r.expressionText(n, path) }},
		{"with", func(n *yaml.Node, path string) { s.With = r.with(n, path) }},
		{"startBy", func(n *yaml.Node, path string) { s.StartBy = r.duration(n, path) }},
		{"timeout", func(n *yaml.Node, path string) { s.Timeout = r.duration(n, path) }},
		{"heartbeat", func(n *yaml.Node, path string) { s.Heartbeat = r.duration(n, path) }},
		{"inline", func(n *yaml.Node, path string) { s.Inline = r.boolean(n, path) }},
		{"exclusive", func(n *yaml.Node, path string) { s.Shared = !r.boolean(n, path) }},
		{"retry", func(n *yaml.Node, path string) { s.Retry = r.retry(n, path) }},
		{"onError", func(n *yaml.Node, path string) { s.OnError = r.onError(n, path) }},
		{"onAnswer", func(n *yaml.Node, path string) { s.OnAnswer = r.onAnswer(n, path) }},
		{"repeat", func(n *yaml.Node, path string) { s.Repeat = r.repeat(n, path) }},
		{"undo", func(n *yaml.Node, path string) { s.Undo = r.undo(n, path) }},
		{"waiting", func(n *yaml.Node, path string) { s.Waiting = r.waiting(n, path) }},
	})
	return s
}

// needs reads a list, or {any: a list}.
func (r reader) needs(n *yaml.Node, path string) (needs []string, anyOf bool) {
	if n.Kind == yaml.MappingNode {
		r.mapping(n, path, "needs", []field{
			{"any", func(n *yaml.Node, path string) { needs, anyOf = r.needed(n, path), true }},
		})
		if !anyOf {
			r.wrong(path, "needs is a list, such as [reserve], or {any: [reserve, order]}")
		}
		return needs, anyOf
	}
	return r.needed(n, path), false
}

func (r reader) needed(n *yaml.Node, path string) []string {
	names := []string{}
	r.list(n, path, "a list, such as [reserve]", func(n *yaml.Node, path string) {
		// What cannot be read stays in its place, so that the paths of the others are right.
		names = append(names, r.text(n, path))
	})
	return names
}

func (r reader) onError(n *yaml.Node, path string) []makegood.ErrorRoute {
	routes := []makegood.ErrorRoute{}
	r.list(n, path, "a list, such as [{kind: timeout, do: skip}]", func(n *yaml.Node, path string) {
		var e makegood.ErrorRoute
		r.mapping(n, path, "a route of onError", []field{
			{"kind", func(n *yaml.Node, path string) { e.Kind = r.text(n, path) }},
			{"do", func(n *yaml.Node, path string) { e.Do = r.errorDo(n, path) }},
			{"retry", func(n *yaml.Node, path string) { e.Retry = r.retry(n, path) }},
			{"output", func(n *yaml.Node, path string) { e.Output = r.output(n, path) }},
		})
		routes = append(routes, e)
	})
	return routes
}

func (r reader) errorDo(n *yaml.Node, path string) (do makegood.ErrorDo) {
	text := r.text(n, path)
	if text == "" {
		return do
	}
	if err := do.UnmarshalText([]byte(text)); err != nil {
		r.wrong(path, "do: %v", err)
	}
	return do
}

// output reads a constant as JSON.
func (r reader) output(n *yaml.Node, path string) json.RawMessage {
	before := len(r.found)
	value := r.value(nil, n, path, 0)
	if len(r.found) > before {
		r.spoil(path)
		return nil
	}
	return value
}

func (r reader) repeat(n *yaml.Node, path string) *makegood.Repeat {
	var repeat makegood.Repeat
	r.mapping(n, path, "repeat", []field{
		{"until", func(n *yaml.Node, path string) { repeat.Until = r.expressionText(n, path) }},
		{"every", func(n *yaml.Node, path string) { repeat.Every = r.duration(n, path) }},
		{"for", func(n *yaml.Node, path string) { repeat.For = r.duration(n, path) }},
		{"attempts", func(n *yaml.Node, path string) { repeat.Attempts = r.repeats(n, path) }},
	})
	return &repeat
}

func (r reader) repeats(n *yaml.Node, path string) int {
	return r.count(n, path, func(n int, written string) { r.check.repeats(path, n, written) })
}

// expressionText reads a text that must be an expression.
func (r reader) expressionText(n *yaml.Node, path string) string {
	if n.Kind == yaml.ScalarNode && kindOf(n) != kindText {
		r.wrong(path, `%s must be an expression, such as "${ .input.express }", got %s`, last(path), describe(n))
		return ""
	}
	return r.text(n, path)
}

func (r reader) retry(n *yaml.Node, path string) (retry makegood.Retry) {
	r.mapping(n, path, "retry", []field{
		{"attempts", func(n *yaml.Node, path string) { retry.Attempts = r.attempts(n, path) }},
		{"for", func(n *yaml.Node, path string) { retry.For = r.duration(n, path) }},
		{"backoff", func(n *yaml.Node, path string) { retry.Backoff = r.duration(n, path) }},
		{"max", func(n *yaml.Node, path string) { retry.Max = r.duration(n, path) }},
	})
	return retry
}

func (r reader) attempts(n *yaml.Node, path string) int {
	return r.count(n, path, func(n int, written string) { r.check.attempts(path, n, written) })
}

// count reads a number of attempts, and checks it as written, because 0 would mean the default later. A number beyond
// int is out of range, too.
func (r reader) count(n *yaml.Node, path string, check func(n int, written string)) int {
	if !r.plain(n, path) {
		return 0
	}
	count, err := strconv.Atoi(n.Value)
	if kindOf(n) != kindNumber || err != nil && !errors.Is(err, strconv.ErrRange) {
		r.wrong(path, "attempts must be a whole number, got %s", describe(n))
		return count
	}
	check(count, n.Value)
	r.spoil(path)
	return count
}

func (r reader) undo(n *yaml.Node, path string) *makegood.Undo {
	if n.Kind == yaml.ScalarNode && kindOf(n) == kindText {
		if text := r.text(n, path); text != "none" && text != "" {
			r.wrong(path, "%q is not an undo: want none, or a mapping such as {action: refund}", text)
		}
		return &makegood.Undo{None: n.Value == "none"}
	}
	var u makegood.Undo
	r.mapping(n, path, "an undo", []field{
		{"agent", func(n *yaml.Node, path string) { u.Agent = r.text(n, path) }},
		{"action", func(n *yaml.Node, path string) { u.Action = r.text(n, path) }},
		{"with", func(n *yaml.Node, path string) { u.With = r.with(n, path) }},
		{"startBy", func(n *yaml.Node, path string) { u.StartBy = r.duration(n, path) }},
		{"timeout", func(n *yaml.Node, path string) { u.Timeout = r.duration(n, path) }},
		{"heartbeat", func(n *yaml.Node, path string) { u.Heartbeat = r.duration(n, path) }},
		{"retry", func(n *yaml.Node, path string) { u.Retry = r.retry(n, path) }},
		{"waiting", func(n *yaml.Node, path string) { u.Waiting = r.waiting(n, path) }},
	})
	return &u
}

// last is the last part of a path, as a message names it.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// wrong adds an error at path, and spoils the path.
func (r reader) wrong(path, format string, args ...any) {
	r.add(path, format, args...)
	r.spoil(path)
}

// mapping reads what, which may have these fields.
func (r reader) mapping(n *yaml.Node, path, what string, fields []field) {
	r.at(path, n)
	if !r.plain(n, path) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(path, "%s must be a mapping, got %s", what, describe(n))
		return
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	for _, m := range r.members(n, path) {
		i := slices.Index(names, m.key)
		if i < 0 {
			r.lines[m.path] = m.line
			r.add(m.path, "%s has no field %q%s", what, m.key, suggest(m.key, names))
			continue
		}
		r.lines[m.path] = m.line
		fields[i].read(m.value, m.path)
	}
}

// member is one entry of a mapping.
type member struct {
	key   string
	path  string
	line  int
	value *yaml.Node
}

// members lists the entries of a mapping with valid keys, and adds errors for the others.
func (r reader) members(n *yaml.Node, path string) []member {
	var members []member
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		m := member{key: key.Value, path: join(path, key.Value), line: key.Line, value: value}
		first, twice := seen[m.key]
		here := r.place(path, key)
		switch {
		case !r.plain(key, here):
		case key.Kind != yaml.ScalarNode || kindOf(key) != kindText:
			r.add(here, "a key must be text, got %s", describe(key))
		case twice:
			r.add(here, "%q is here already, in line %d", m.key, first)
		default:
			seen[m.key] = key.Line
			members = append(members, m)
		}
	}
	return members
}

// place makes a path for an element that has no path of its own, for the sake of its line.
func (r reader) place(path string, n *yaml.Node) string {
	place := fmt.Sprintf("%s.(%d:%d)", path, n.Line, n.Column)
	r.lines[place] = n.Line
	return place
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// at notes where path stands, unless that is known already, from its key.
func (r reader) at(path string, n *yaml.Node) {
	if _, known := r.lines[path]; !known || path == "" {
		r.lines[path] = n.Line
	}
}

func (r reader) list(n *yaml.Node, path, what string, item func(n *yaml.Node, path string)) {
	if !r.plain(n, path) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.wrong(path, "%s must be %s, got %s", last(path), what, describe(n))
		return
	}
	for i, entry := range n.Content {
		path := fmt.Sprintf("%s[%d]", path, i)
		r.lines[path] = entry.Line
		item(entry, path)
	}
}

// plain refuses tags, which Makegood does not follow.
func (r reader) plain(n *yaml.Node, path string) bool {
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" {
		r.wrong(path, "the tag %s is not allowed", n.Tag)
		return false
	}
	return true
}

// text reads a scalar that must be text and not empty.
func (r reader) text(n *yaml.Node, path string) string {
	switch {
	case !r.plain(n, path):
	case n.Kind != yaml.ScalarNode || kindOf(n) == kindNull:
		r.wrong(path, "%s must be text, got %s", last(path), describe(n))
	case kindOf(n) != kindText:
		r.wrong(path, "%s must be text, got %s: put it in quotes", last(path), describe(n))
	case n.Value == "":
		r.wrong(path, "%s is empty", last(path))
	default:
		return n.Value
	}
	return ""
}

func (r reader) boolean(n *yaml.Node, path string) bool {
	if r.plain(n, path) && kindOf(n) != kindBool {
		r.wrong(path, "%s must be true or false, got %s", last(path), describe(n))
	}
	return strings.EqualFold(n.Value, "true")
}

func (r reader) duration(n *yaml.Node, path string) makegood.Duration {
	if !r.plain(n, path) {
		return 0
	}
	if kindOf(n) != kindText {
		r.wrong(path, "%s must be a duration with its unit, such as 30s, got %s", last(path), describe(n))
		return 0
	}
	d, err := makegood.ParseDuration(n.Value)
	switch {
	case err != nil:
		r.wrong(path, "%s %v", last(path), err)
	case d == 0:
		// Said here, because 0 would mean the default further on.
		r.wrong(path, "%s %q is no time at all: leave it out for its default", last(path), n.Value)
	}
	return d
}
