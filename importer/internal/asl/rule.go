package asl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// equal compares two values. The name of an error is a kind here, so what it is compared with becomes one.
func (p *pool) equal(a, b *value, operator string) *value {
	if b.form == formKind {
		a, b = b, a
	}
	if name, is := literalText(b); is && a.form == formKind {
		b = p.text(kindOf(name))
	}
	return p.jq("%s %s %s", p.operand(a), operator, p.operand(b))
}

// typeTests are the comparisons that ask what something is.
var typeTests = map[string]string{
	"IsNull": "%s == null", "IsBoolean": `(%s | type) == "boolean"`, "IsNumeric": `(%s | type) == "number"`, "IsString": `(%s | type) == "string"`,
	"IsTimestamp": `(%s | type) == "string" and (%[1]s | test("^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:\\d\\d)$"))`,
}

// comparison takes the name of a comparison apart.
var comparison = regexp.MustCompile(`^(String|Numeric|Boolean|Timestamp)(Equals|LessThan|LessThanEquals|GreaterThan|GreaterThanEquals)(Path)?$`)

var comparators = map[string]string{"Equals": "==", "LessThan": "<", "LessThanEquals": "<=", "GreaterThan": ">", "GreaterThanEquals": ">="}

var jsonTypes = map[string]string{"String": "string", "Numeric": "number", "Boolean": "boolean", "Timestamp": "string"}

// rule translates a rule of a Choice into jq that gives true or false.
func (s sight) rule(n *node) (*value, error) {
	for _, m := range n.members {
		switch m.name {
		case "And", "Or":
			return s.several(m.value, strings.ToLower(m.name))
		case "Not":
			inner, err := s.rule(m.value)
			if err != nil {
				return nil, err
			}
			return s.jq("%s | not", s.operand(inner)), nil
		}
	}
	return s.comparison(n)
}

func (s sight) several(n *node, word string) (*value, error) {
	var terms []string
	for _, item := range n.items {
		inner, err := s.rule(item)
		if err != nil {
			return nil, err
		}
		terms = append(terms, s.operand(inner))
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%s of nothing", word)
	}
	return s.jq("%s", strings.Join(terms, " "+word+" ")), nil
}

func (s sight) comparison(n *node) (*value, error) {
	variable, err := s.at(n.textOf("Variable"))
	if err != nil {
		return nil, err
	}
	for _, m := range n.members {
		switch {
		case m.name == "Variable" || m.name == "Next" || m.name == "Comment" || m.name == "Assign" || m.name == "Output":
			continue
		case m.name == "IsPresent":
			return s.present(n.textOf("Variable"), m.value.text == "true")
		case typeTests[m.name] != "":
			test := s.jq(typeTests[m.name], s.operand(variable))
			if m.value.text == "false" {
				test = s.jq("%s | not", s.operand(test))
			}
			return test, nil
		case m.name == "StringMatches":
			return s.jq(`(%s | type) == "string" and (%[1]s | test(%s))`, s.operand(variable), quoted(wildcards(m.value.text))), nil
		case comparison.MatchString(m.name):
			return s.compared(variable, comparison.FindStringSubmatch(m.name), m.value)
		default:
			return nil, fmt.Errorf("%q is no comparison", clip(m.name))
		}
	}
	return nil, fmt.Errorf("a rule compares nothing")
}

// compared compares a variable with a constant, or with another, of one type; of another type it is no match.
func (s sight) compared(variable *value, words []string, with *node) (*value, error) {
	other := s.node(with)
	if words[3] == "Path" {
		var err error
		if other, err = s.at(with.text); err != nil {
			return nil, err
		}
	}
	operator := comparators[words[2]]
	if words[1] == "Timestamp" {
		return s.timestamps(variable, operator, other), nil
	}
	if operator == "==" {
		if words[3] == "Path" {
			return s.jq("(%s | type) == %q and %[1]s == %[3]s", s.operand(variable), jsonTypes[words[1]], s.operand(other)), nil
		}
		return s.equal(variable, other, operator), nil
	}
	guard := fmt.Sprintf("(%s | type) == %q", s.operand(variable), jsonTypes[words[1]])
	if words[3] == "Path" {
		guard += fmt.Sprintf(" and (%s | type) == %q", s.operand(other), jsonTypes[words[1]])
	}
	return s.jq("%s and %s %s %s", guard, s.operand(variable), operator, s.operand(other)), nil
}

// timestamps compares times by the second.
func (s sight) timestamps(a *value, operator string, b *value) *value {
	s.note("times are compared by the second, without fractions")
	second := func(v *value) string {
		return fmt.Sprintf(`(%s | sub("\\.[0-9]+"; "") | fromdate)`, s.operand(v))
	}
	return s.jq("%s %s %s", second(a), operator, second(b))
}

// present asks whether there is anything at a path.
func (s sight) present(path string, want bool) (*value, error) {
	if !strings.HasPrefix(path, "$") || strings.HasPrefix(path, "$$") {
		return nil, fmt.Errorf("IsPresent of %q is not translated", clip(path))
	}
	base, rest := s.input, path[1:]
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		var err error
		if base, rest, err = s.variable(rest); err != nil {
			return nil, err
		}
	}
	segments, err := parsePath(rest)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return s.constant(fmt.Sprint(want)), nil
	}
	last := segments[len(segments)-1]
	parent := s.follow(base, segments[:len(segments)-1])
	is := s.has(parent, last)
	if is == nil {
		return nil, fmt.Errorf("IsPresent of %s is not translated", clip(path))
	}
	if !want {
		if is.form == formConstant {
			return s.constant(map[string]string{"true": "false", "false": "true"}[is.text]), nil
		}
		is = s.jq("%s | not", s.operand(is))
	}
	return is, nil
}

// has asks whether a value has a member or an element; nil: that cannot be said.
func (s sight) has(v *value, last segment) *value {
	if v.form == formPick {
		return s.each(v, func(v *value) *value { return s.has(v, last) })
	}
	switch {
	case last.all || last.slice != "":
		return nil
	case !last.member:
		return s.jq(`%s | type == "array" and has(%d)`, s.operand(v), last.index)
	case v.form == formObject || v.form == formUpdate:
		if slices.Contains(v.names, last.name) {
			return s.constant("true")
		}
		if v.form == formObject {
			return s.constant("false")
		}
		return s.has(v.parts[0], last)
	}
	return s.jq(`%s | type == "object" and has(%s)`, s.operand(v), quoted(last.name))
}

// wildcards turns a pattern of StringMatches, in which * stands for anything, into a regular expression.
func wildcards(pattern string) string {
	var out strings.Builder
	out.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			out.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case pattern[i] == '*':
			out.WriteString("(.|\\n)*")
		default:
			out.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	return out.String() + "$"
}
