package localstack

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	loopKey       = "Fn::ForEach::"
	loopTransform = "AWS::LanguageExtensions"
)

// Unroll writes the loops of a template out, so that it can be deployed where the transform AWS::LanguageExtensions is
// not known. It knows the part that template.yaml uses: loops over a list that is written there, or repeated by an
// alias, with the variable in keys, !Ref and !Sub, and the DefaultValue of !FindInMap. A loop within a loop is an
// error.
func Unroll(template []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(template, &document); err != nil {
		return nil, err
	}
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("a template is a mapping")
	}
	repeat(&document)
	if err := unrollIn(document.Content[0]); err != nil {
		return nil, err
	}
	settle(document.Content[0], below(document.Content[0], "Mappings"))
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := errors.Join(e.Encode(&document), e.Close())
	return b.Bytes(), err
}

// repeat writes out what an alias stands for, since CloudFormation takes none.
func repeat(n *yaml.Node) {
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			n.Content[i] = child.Alias
		}
		repeat(n.Content[i])
	}
	n.Anchor = ""
}

// below returns what is under a key of a mapping; nil: nothing.
func below(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// settle puts a value in place of each !FindInMap with a DefaultValue: what the mapping has, or else the default. One
// whose keys are not written there is left as it is.
func settle(n, maps *yaml.Node) {
	for i, child := range n.Content {
		settle(child, maps)
		if child.Tag != "!FindInMap" || len(child.Content) != 4 {
			continue
		}
		keys := child.Content
		if fallback := below(keys[3], "DefaultValue"); fallback != nil && keys[1].Tag == "!!str" {
			n.Content[i] = fallback
			if found := below(below(below(maps, keys[0].Value), keys[1].Value), keys[2].Value); found != nil {
				n.Content[i] = found
			}
		}
	}
}

// unrollIn unrolls all loops of a node, and takes the transform out of the list of those that are to be applied.
func unrollIn(n *yaml.Node) error {
	var content []*yaml.Node
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode && child.Value == loopTransform:
		case n.Kind != yaml.MappingNode:
			content = append(content, child)
		case i%2 == 0 && strings.HasPrefix(child.Value, loopKey):
			written, err := unrolled(child, n.Content[i+1])
			if err != nil {
				return err
			}
			content = append(content, written...)
		case i%2 == 1 && strings.HasPrefix(n.Content[i-1].Value, loopKey):
			// It was written out with its key.
		default:
			content = append(content, child)
		}
	}
	n.Content = content
	for _, child := range content {
		if err := unrollIn(child); err != nil {
			return err
		}
	}
	return nil
}

// unrolled returns the keys and values that a loop stands for.
func unrolled(key, loop *yaml.Node) ([]*yaml.Node, error) {
	if loop.Kind != yaml.SequenceNode || len(loop.Content) != 3 || loop.Content[1].Kind != yaml.SequenceNode || loop.Content[2].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: %s: want a variable, a list and what to repeat", key.Line, key.Value)
	}
	name, values, body := loop.Content[0].Value, loop.Content[1], loop.Content[2]
	var all []*yaml.Node
	for _, value := range values.Content {
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
			return nil, fmt.Errorf("line %d: %s: want a list of names", value.Line, key.Value)
		}
		for _, child := range body.Content {
			if strings.HasPrefix(child.Value, loopKey) {
				return nil, fmt.Errorf("line %d: a loop in %s: that is not known here", child.Line, key.Value)
			}
			all = append(all, filled(child, name, value.Value))
		}
	}
	return all, nil
}

// filled copies a node, with a value in place of the variable of a loop. A !Sub in which nothing is left to put in
// becomes the text that it is: the transform allows functions in places where nothing else does.
func filled(n *yaml.Node, name, value string) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, filled(child, name, value))
	}
	if n.Kind != yaml.ScalarNode {
		return &c
	}
	if n.Tag == "!Ref" && n.Value == name {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	}
	c.Value = strings.ReplaceAll(n.Value, "${"+name+"}", value)
	if c.Value != n.Value && !strings.Contains(c.Value, "${") {
		c.Tag, c.Style = "!!str", 0
	}
	return &c
}
