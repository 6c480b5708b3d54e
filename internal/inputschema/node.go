package inputschema

import (
	"fmt"
	"regexp"
	"slices"
)

// Node is what a schema says of one place of the input.
type Node struct {
	// Doc is the schema at this place as it was written; nil where it is true or false.
	Doc map[string]any

	at string
	// never: it is false, and allows no value.
	never bool
	// refs are the schemas that it refers to.
	refs     []*Node
	children []child
}

// child is a schema within a schema.
type child struct {
	keyword, name string
	node          *Node
}

// comesBack reports whether a schema looks at the same value by itself again, without end. seen has the schemas asked
// so far: true while their targets are asked. Each is asked once, however many lead to it.
func (n *Node) comesBack(seen map[*Node]bool) bool {
	if n == nil {
		return false
	}
	if asking, known := seen[n]; known {
		return asking
	}
	seen[n] = true
	if slices.ContainsFunc(n.here(), func(next *Node) bool { return next.comesBack(seen) }) {
		return true
	}
	seen[n] = false
	return false
}

// here are the schemas that look at the same value.
func (n *Node) here() []*Node {
	next := slices.Clone(n.refs)
	for _, c := range n.children {
		if slices.Contains(inPlace, c.keyword) {
			next = append(next, c.node)
		}
	}
	return next
}

// surely are the schemas that a value must fit to fit n: n, its $ref, and its allOf.
func (n *Node) surely() []*Node {
	all := []*Node{n}
	for i := 0; i < len(all); i++ {
		next := slices.Clone(all[i].refs)
		for _, c := range all[i].children {
			if c.keyword == "allOf" {
				next = append(next, c.node)
			}
		}
		for _, m := range next {
			if m != nil && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// Member returns the schema for a member of an object at n; nil: none. If such a member is impossible, why says so.
func (n *Node) Member(name string) (member *Node, why string) {
	if n == nil {
		return nil, ""
	}
	for _, s := range n.surely() {
		if kind := s.noObject(); kind != "" {
			return nil, "it is " + kind + " by the input's schema, which has no members"
		}
		found, closed := s.member(name)
		if closed || found != nil && found.never {
			return nil, fmt.Sprintf("the input's schema allows no member %q here", name)
		}
		if member == nil {
			member = found
		}
	}
	return member, ""
}

// member returns what s itself says of a member; closed: that there is none.
func (n *Node) member(name string) (found *Node, closed bool) {
	matched := false
	for _, c := range n.children {
		switch {
		case c.keyword == "properties" && c.name == name:
			found = c.node
		case c.keyword == "patternProperties":
			if p, err := regexp.Compile(c.name); err != nil || p.MatchString(name) {
				matched = true
			}
		case c.keyword == "additionalProperties":
			closed = c.node.never
		}
	}
	return found, closed && found == nil && !matched
}

// noObject says what a value is by its type, if that can be neither an object nor null; empty: it can.
func (n *Node) noObject() string {
	switch t := n.Doc["type"].(type) {
	case string:
		if t != "object" && t != "null" {
			return t
		}
	case []any:
		if len(t) > 0 && !slices.Contains(t, any("object")) && !slices.Contains(t, any("null")) {
			return fmt.Sprint(t[0])
		}
	}
	return ""
}

// Names are the members that n names, sorted; those that it refers to, too.
func (n *Node) Names() (names []string) {
	for _, s := range n.surely() {
		for _, c := range s.children {
			if c.keyword == "properties" {
				names = append(names, c.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Says returns the value of a keyword at a place that holds no schema, such as title; nil: none.
func (n *Node) Says(keyword string) any {
	for _, s := range n.surely() {
		if v, says := s.Doc[keyword]; says {
			return v
		}
	}
	return nil
}

// Required are the members that an object at n must have, in the order in which they are written.
func (n *Node) Required() (names []string) {
	for _, s := range n.surely() {
		list, _ := s.Doc["required"].([]any)
		for _, v := range list {
			if name, is := v.(string); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Chooses reports whether what n is depends on the value: it has alternatives, or conditions.
func (n *Node) Chooses() bool {
	for _, s := range n.surely() {
		for _, c := range s.children {
			if slices.Contains([]string{"anyOf", "oneOf", "if"}, c.keyword) {
				return true
			}
		}
	}
	return false
}
