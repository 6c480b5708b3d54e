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
	r := reader{c}
	root := r.document(source, "workflow")
	if root == nil {
		return w, false
	}
	return r.workflow(root), root.Kind == yaml.MappingNode
}

// document returns the one document of a file without its aliases, or nil, and adds the reason. what names it.
func (r reader) document(source []byte, what string) *yaml.Node {
	r.lines = map[string]int{"": 1}
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
		r.add("", "the file is empty: want a %s", what)
		return nil
	}
	if err != nil {
		r.notYAML(err, source)
		return nil
	}
	switch second, err := next(d); {
	case err == nil:
		r.lines[""] = second.Line
		r.add("", "a second document begins here: want one %s a file", what)
		return nil
	case !errors.Is(err, io.EOF):
		r.notYAML(err, source)
		return nil
	}
	return r.expand(root.Content[0])
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

func (r reader) workflow(n *yaml.Node) makegood.Workflow {
	var f file
	workflowKind(&f).read(r, n, "")
	for i := range f.Steps {
		f.defaults.apply(&f.Steps[i])
	}
	r.check.schedules = f.schedules
	return f.Workflow
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

// share reads a number between 0 and 1.
func (r reader) share(n *yaml.Node, path string) float64 {
	if !r.plain(n, path) {
		return 0
	}
	number, err := strconv.ParseFloat(n.Value, 64)
	if kindOf(n) != kindNumber || err != nil || !(number > 0) {
		r.wrong(path, "%s must be a number above 0 and below 1, got %s", last(path), describe(n))
	}
	return number
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

// expressionText reads a text that must be an expression.
func (r reader) expressionText(n *yaml.Node, path string) string {
	if n.Kind == yaml.ScalarNode && kindOf(n) != kindText {
		r.wrong(path, `%s must be an expression, such as "${ .input.express }", got %s`, last(path), describe(n))
		return ""
	}
	return r.text(n, path)
}

// count reads a number of attempts, and checks it as written, because 0 would mean the default later. A number beyond
// int is out of range, too.
func (r reader) count(n *yaml.Node, path string, most int) int {
	if !r.plain(n, path) {
		return 0
	}
	count, err := strconv.Atoi(n.Value)
	if kindOf(n) != kindNumber || err != nil && !errors.Is(err, strconv.ErrRange) {
		r.wrong(path, "%s must be a whole number, got %s", last(path), describe(n))
		return count
	}
	r.check.count(path, count, n.Value, most)
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
	undoKind(&u, &makegood.Step{}).read(r, n, path)
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
		fields[i].is.read(r, m.value, m.path)
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
