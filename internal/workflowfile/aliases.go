package workflowfile

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// MaxNodes is how many values a workflow file may have when its aliases are written out: several times what fits into
// MaxSourceBytes without one. It bounds aliases of aliases, which double with each line.
const MaxNodes = 200_000

// expander writes out the aliases and merge keys of a file.
type expander struct {
	reader
	nodes int
	// open are the anchors under expansion: an alias to one of these would have no end.
	open []*yaml.Node
}

// expand returns a file without aliases, anchors and merge keys, or nil, and adds the reason. Errors in an aliased
// value are reported at the alias.
func (r reader) expand(root *yaml.Node) *yaml.Node {
	e := &expander{reader: r}
	before := len(r.found)
	expanded := e.node(root)
	if len(r.found) > before {
		return nil
	}
	return expanded
}

// node returns a value without aliases. After the first error with an alias it reports no others.
func (e *expander) node(n *yaml.Node) *yaml.Node {
	if e.nodes++; e.nodes > MaxNodes {
		e.once(n, "with its aliases written out the file has more than %d values", MaxNodes)
		return n
	}
	if n.Kind == yaml.AliasNode {
		return e.alias(n)
	}
	if n.Anchor != "" {
		e.open = append(e.open, n)
		defer func() { e.open = e.open[:len(e.open)-1] }()
	}
	plain := *n
	plain.Anchor, plain.Content = "", make([]*yaml.Node, 0, len(n.Content))
	var merged []*yaml.Node
	for i := 0; i < len(n.Content); i++ {
		if n.Kind == yaml.MappingNode && i%2 == 0 && isMerge(n.Content[i]) {
			merged = append(merged, e.merge(n.Content[i+1])...)
			i++
			continue
		}
		plain.Content = append(plain.Content, e.node(n.Content[i]))
	}
	for i := 0; i+1 < len(merged); i += 2 {
		if !hasKey(plain.Content, merged[i].Value) {
			plain.Content = append(plain.Content, merged[i], merged[i+1])
		}
	}
	return &plain
}

func (e *expander) alias(n *yaml.Node) *yaml.Node {
	if slices.Contains(e.open, n.Alias) {
		e.once(n, "the alias *%s stands inside its own anchor", n.Value)
		return n
	}
	value := *e.node(n.Alias)
	value.Line, value.Column = n.Line, n.Column
	return &value
}

// merge returns the entries of the mapping, or the list of mappings, that a merge key names: the first of two with one
// name.
func (e *expander) merge(n *yaml.Node) []*yaml.Node {
	from := e.node(n)
	mappings := []*yaml.Node{from}
	if from.Kind == yaml.SequenceNode {
		mappings = from.Content
	}
	var entries []*yaml.Node
	for _, m := range mappings {
		if m.Kind != yaml.MappingNode {
			e.once(n, "the merge key << wants a mapping or a list of mappings, got %s", describe(m))
			return nil
		}
		entries = append(entries, m.Content...)
	}
	return entries
}

// once adds an error, unless one was added: a faulty alias is often met many times.
func (e *expander) once(n *yaml.Node, format string, args ...any) {
	if len(e.found) == 0 {
		e.add(e.place("", n), format, args...)
	}
}

// isMerge reports whether a key is << without quotes.
func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.Tag == "!!merge" }

func hasKey(content []*yaml.Node, key string) bool {
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == key {
			return true
		}
	}
	return false
}
