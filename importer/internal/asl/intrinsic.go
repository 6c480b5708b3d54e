package asl

import (
	"errors"
	"fmt"
	"strings"
)

// maxNested is how deep calls of functions may stand in each other, as the language has it.
const maxNested = 10

// call is a call of an intrinsic function, or one of its arguments.
type call struct {
	// name is that of a function; empty: text is a path, or literal a constant.
	name    string
	args    []call
	path    string
	literal *node
}

// intrinsic evaluates States.NAME(...).
func (s sight) intrinsic(text string) (*value, error) {
	c, rest, err := parseCall(text, 0)
	if err == nil && strings.TrimSpace(rest) != "" {
		err = fmt.Errorf("%q follows the function", clip(rest))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clip(text), err)
	}
	return s.called(c)
}

// parseCall reads an argument: a call, a path, or a constant.
func parseCall(text string, depth int) (c call, rest string, err error) {
	text = strings.TrimLeft(text, " ")
	switch {
	case depth > maxNested:
		return c, "", fmt.Errorf("functions stand in each other deeper than %d", maxNested)
	case strings.HasPrefix(text, "States."):
		return parseFunction(text, depth)
	case strings.HasPrefix(text, "'"):
		return parseQuoted(text)
	}
	end := endOfArgument(text)
	word := strings.TrimSpace(text[:end])
	if strings.HasPrefix(word, "$") {
		return call{path: word}, text[end:], nil
	}
	literal, err := decodeJSON([]byte(word))
	if err != nil || literal.kind == isText || literal.kind == isList || literal.kind == isObject {
		return c, "", fmt.Errorf("%q is no argument", clip(word))
	}
	return call{literal: literal}, text[end:], nil
}

// endOfArgument is where a path or a number ends: at a comma or a parenthesis outside of brackets.
func endOfArgument(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			open++
		case ']':
			open--
		case ',', ')':
			if open <= 0 {
				return i
			}
		}
	}
	return len(text)
}

func parseFunction(text string, depth int) (c call, rest string, err error) {
	name, rest, found := strings.Cut(text, "(")
	if !found {
		return c, "", errors.New("a function has no (")
	}
	c.name = strings.TrimSpace(strings.TrimPrefix(name, "States."))
	for {
		rest = strings.TrimLeft(rest, " ")
		if after, end := strings.CutPrefix(rest, ")"); end {
			return c, after, nil
		}
		if len(c.args) > 0 {
			after, comma := strings.CutPrefix(rest, ",")
			if !comma {
				return c, "", errors.New("a function has no )")
			}
			rest = after
		}
		var arg call
		if arg, rest, err = parseCall(rest, depth+1); err != nil {
			return c, "", err
		}
		c.args = append(c.args, arg)
	}
}

// parseQuoted reads a text between single quotes, in which a backslash quotes one character.
func parseQuoted(text string) (c call, rest string, err error) {
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\'':
			return call{literal: &node{kind: isText, text: out.String()}}, text[i+1:], nil
		case text[i] == '\\' && i+1 < len(text):
			// \{ and \} stay as they are until the braces of a format are read.
			if i++; text[i] == '{' || text[i] == '}' {
				out.WriteByte('\\')
			}
			out.WriteByte(text[i])
		default:
			out.WriteByte(text[i])
		}
	}
	return c, "", errors.New("a text has no end")
}

// functionsOf are the intrinsic functions that jq has a match for: how many arguments they take, and what they are,
// over their arguments as jq. The others are told.
var functionsOf = map[string]struct {
	arguments int
	jq        string
}{
	"StringToJson":   {1, "%[1]s | fromjson"},
	"JsonToString":   {1, "%[1]s | tojson"},
	"ArrayPartition": {2, "%[1]s as $list | %[2]s as $n | [range(0; $list | length; $n) | $list[.:. + $n]]"},
	"ArrayContains":  {2, "%[2]s as $one | %[1]s | any(. == $one)"},
	"ArrayRange":     {3, "[range(%[1]s; %[2]s + (if %[3]s > 0 then 1 else -1 end); %[3]s)]"},
	"ArrayLength":    {1, "%[1]s | length"},
	"Base64Encode":   {1, "%[1]s | @base64"},
	"Base64Decode":   {1, "%[1]s | @base64d"},
	"StringSplit":    {2, "%[2]s as $at | [%[1]s | split($at)[] | select(. != \"\")]"},
	"MathAdd":        {2, "%[1]s + %[2]s"},
}

// called translates a call.
func (s sight) called(c call) (*value, error) {
	switch {
	case c.path != "":
		return s.at(c.path)
	case c.literal != nil:
		return s.node(c.literal), nil
	case c.name == "Format":
		return s.format(c)
	}
	args := make([]*value, len(c.args))
	for i, a := range c.args {
		arg, err := s.called(a)
		if err != nil {
			return nil, err
		}
		args[i] = arg
	}
	switch {
	case c.name == "Array":
		return s.list(args), nil
	case c.name == "ArrayGetItem" && len(args) == 2:
		if i, is := literalInt(args[1]); is {
			return s.index(args[0], i), nil
		}
		return s.jq("%s[%s]", s.operand(args[0]), s.operand(args[1])), nil
	case c.name == "ArrayUnique" && len(args) == 1:
		s.note("States.ArrayUnique: jq's unique sorts, too")
		return s.jq("%s | unique", s.operand(args[0])), nil
	case c.name == "JsonMerge" && len(args) == 3 && args[2].text == "false":
		return s.jq("%s + %s", s.operand(args[0]), s.operand(args[1])), nil
	case c.name == "UUID" || c.name == "MathRandom":
		return nil, fmt.Errorf("the function States.%s differs each time, and an expression here must not: let the agent make it, or take .job.id", c.name)
	}
	f, known := functionsOf[c.name]
	if !known || f.arguments != len(args) {
		return nil, fmt.Errorf("the function States.%s with %d arguments has no match in jq here", clip(c.name), len(args))
	}
	texts := make([]any, len(args))
	for i, a := range args {
		texts[i] = s.operand(a)
	}
	return s.jq(f.jq, texts...), nil
}

// format translates States.Format('... {} ...', ...).
func (s sight) format(c call) (*value, error) {
	if len(c.args) == 0 || c.args[0].literal == nil || c.args[0].literal.kind != isText {
		return nil, errors.New("States.Format is translated where its first argument is a text that is written out")
	}
	pattern := c.args[0].literal.text
	var parts []*value
	var literal strings.Builder
	next := 1
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			literal.WriteByte(pattern[i])
		case strings.HasPrefix(pattern[i:], "{}"):
			if next >= len(c.args) {
				return nil, errors.New("States.Format has more {} than arguments")
			}
			part, err := s.called(c.args[next])
			if err != nil {
				return nil, err
			}
			parts = append(parts, s.text(literal.String()), part)
			literal.Reset()
			next, i = next+1, i+1
		default:
			literal.WriteByte(pattern[i])
		}
	}
	if next != len(c.args) {
		return nil, errors.New("States.Format has more arguments than {}")
	}
	parts = append(parts, s.text(literal.String()))
	return s.joined(parts), nil
}

// joined is a text of these parts; what is empty is left out.
func (p *pool) joined(parts []*value) *value {
	var kept []*value
	for _, part := range parts {
		if part.text != `""` || part.form != formConstant {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return p.text("")
	}
	if _, literal := literalText(kept[0]); literal && len(kept) == 1 {
		return kept[0]
	}
	return p.make(value{form: formText, parts: kept})
}
