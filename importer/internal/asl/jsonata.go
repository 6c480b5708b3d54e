package asl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// jsonata translates one expression of JSONata, the part that jq has a match for, while it reads it. Everything else is
// an error that names it.
type jsonata struct {
	sight
	tokens []lexeme
	at     int
	depth  int
}

// term is a value, and whether it is surely true or false.
type term struct {
	*value
	truth bool
}

// expressionOf evaluates a JSONata field: {% ... %} is an expression, and anything else is what it is.
func (s sight) expressionOf(n *node) (*value, error) {
	if n == nil {
		return nil, errors.New("an expression is missing")
	}
	switch n.kind {
	case isText:
		inside, is := strings.CutPrefix(strings.TrimSpace(n.text), "{%")
		if !is {
			return s.text(n.text), nil
		}
		v, err := s.jsonata(strings.TrimSuffix(inside, "%}"))
		return v.value, err
	case isList:
		parts := make([]*value, len(n.items))
		for i, item := range n.items {
			part, err := s.expressionOf(item)
			if err != nil {
				return nil, err
			}
			parts[i] = part
		}
		return s.list(parts), nil
	case isObject:
		var names []string
		var parts []*value
		for _, m := range n.members {
			part, err := s.expressionOf(m.value)
			if errors.Is(err, errToken) {
				s.note(errToken.Error() + "; " + m.name + " is left out")
				continue
			}
			if err != nil {
				return nil, err
			}
			names, parts = append(names, m.name), append(parts, part)
		}
		return s.object(names, parts), nil
	default:
		return s.node(n), nil
	}
}

func (s sight) jsonata(text string) (term, error) {
	tokens, err := scanned(text)
	if err != nil {
		return term{}, fmt.Errorf("JSONata %q: %w", clip(strings.TrimSpace(text)), err)
	}
	j := &jsonata{sight: s, tokens: tokens}
	t, err := j.expression(0)
	if err == nil && j.at < len(j.tokens) {
		err = fmt.Errorf("%q is not translated here", j.peek().text)
	}
	if err != nil {
		return term{}, fmt.Errorf("JSONata %q: %w", clip(strings.TrimSpace(text)), err)
	}
	return t, nil
}

func (j *jsonata) peek() lexeme {
	if j.at < len(j.tokens) {
		return j.tokens[j.at]
	}
	return lexeme{}
}

func (j *jsonata) take() lexeme {
	t := j.peek()
	j.at++
	return t
}

// sign takes a sign if it comes next.
func (j *jsonata) sign(text string) bool {
	if t := j.peek(); t.kind == tokenSign && t.text == text {
		j.at++
		return true
	}
	return false
}

func (j *jsonata) want(text string) error {
	if !j.sign(text) {
		return fmt.Errorf("want %q before %q", text, j.peek().text)
	}
	return nil
}

// binding is how strongly an operator binds what stands at its left.
var binding = map[string]int{
	".": 75, "[": 80, "(": 80, "*": 60, "/": 60, "%": 60, "+": 50, "-": 50, "&": 50,
	"=": 40, "!=": 40, "<": 40, "<=": 40, ">": 40, ">=": 40, "in": 40, "and": 30, "or": 25, "?": 20,
}

func (j *jsonata) expression(least int) (term, error) {
	if j.depth++; j.depth > MaxDepth {
		return term{}, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	defer func() { j.depth-- }()
	left, err := j.operandOf(j.take())
	for err == nil {
		next := j.peek()
		power := binding[next.text]
		if next.kind != tokenSign && next.kind != tokenName || power <= least {
			return left, nil
		}
		j.at++
		left, err = j.behind(left, next.text, power)
	}
	return left, err
}

// operandOf reads what may stand at the beginning.
func (j *jsonata) operandOf(t lexeme) (term, error) {
	switch t.kind {
	case tokenNumber:
		return term{value: j.constant(t.text)}, nil
	case tokenString:
		return term{value: j.text(t.text)}, nil
	case tokenVariable:
		return j.named(t.text)
	case tokenName:
		switch t.text {
		case "true", "false":
			return term{j.constant(t.text), true}, nil
		case "null":
			return term{value: j.constant("null")}, nil
		}
		if t.text == "function" {
			return term{}, errors.New("a function of one's own is not translated")
		}
		return term{}, fmt.Errorf("%q stands for a member of nothing: say $states.input.%s", t.text, t.text)
	}
	switch t.text {
	case "(":
		inner, err := j.expression(0)
		if err == nil {
			err = j.want(")")
		}
		return inner, err
	case "-":
		inner, err := j.expression(70)
		if err != nil {
			return inner, err
		}
		return term{value: j.jq("-%s", j.operand(inner.value))}, nil
	case "[":
		_, parts, err := j.until("]")
		return term{value: j.list(parts)}, err
	case "{":
		return j.objectLiteral()
	}
	return term{}, fmt.Errorf("%q is not translated here", t.text)
}

func (j *jsonata) objectLiteral() (term, error) {
	var names []string
	var parts []*value
	for !j.sign("}") {
		if len(parts) > 0 {
			if err := j.want(","); err != nil {
				return term{}, err
			}
		}
		name := j.take()
		if name.kind != tokenString || slices.Contains(names, name.text) {
			return term{}, errors.New("the names of an object are translated where they are texts, each once")
		}
		if err := j.want(":"); err != nil {
			return term{}, err
		}
		part, err := j.expression(0)
		if err != nil {
			return term{}, err
		}
		names, parts = append(names, name.text), append(parts, part.value)
	}
	return term{value: j.object(names, parts)}, nil
}

// named evaluates a variable, $states, or a call of a function.
func (j *jsonata) named(name string) (term, error) {
	if j.sign("(") {
		args, _, err := j.until(")")
		if err != nil {
			return term{}, err
		}
		return j.function(name, args)
	}
	if name == "$states" {
		return j.states()
	}
	v, known := j.variables[strings.TrimPrefix(name, "$")]
	if !known {
		return term{}, fmt.Errorf("the variable %s was not assigned on the way here", name)
	}
	return term{value: v}, nil
}

// states evaluates $states.input and its like.
func (j *jsonata) states() (term, error) {
	if err := j.want("."); err != nil {
		return term{}, err
	}
	var v *value
	switch part := j.take().text; part {
	case "input":
		v = j.sight.input
	case "result":
		v = j.result
	case "errorOutput":
		v = j.errorOutput
	case "context":
		path := ""
		for j.sign(".") {
			path += "." + j.take().text
		}
		v, err := j.context(path)
		return term{value: v}, err
	default:
		return term{}, fmt.Errorf("$states.%s is not known", part)
	}
	if v == nil {
		return term{}, errors.New("$states has no result and no error here")
	}
	return term{value: v}, nil
}

// until reads expressions between commas, up to a sign.
func (j *jsonata) until(end string) (terms []term, parts []*value, err error) {
	for !j.sign(end) {
		if len(terms) > 0 {
			if err := j.want(","); err != nil {
				return nil, nil, err
			}
		}
		t, err := j.expression(0)
		if err != nil {
			return nil, nil, err
		}
		terms, parts = append(terms, t), append(parts, t.value)
	}
	return terms, parts, nil
}

// behind reads what follows an operator that stands behind left.
func (j *jsonata) behind(left term, operator string, power int) (term, error) {
	switch operator {
	case ".":
		name := j.take()
		if name.kind != tokenName && name.kind != tokenString {
			return term{}, fmt.Errorf("%q behind a dot is not translated", name.text)
		}
		j.note("a path of JSONata goes into each element of a list by itself; here it fails at a list")
		return term{value: j.member(left.value, name.text)}, nil
	case "[":
		inner, err := j.expression(0)
		if err == nil {
			err = j.want("]")
		}
		// A filter names members of what it filters, which as an expression of its own would stand for nothing.
		i, whole := literalInt(inner.value)
		if err != nil || !whole {
			return term{}, errors.New("a filter is not translated, only a number between brackets")
		}
		return term{value: j.index(left.value, i)}, nil
	case "?":
		return j.conditional(left)
	case "(":
		return term{}, errors.New("a call of what is no function by name is not translated")
	}
	right, err := j.expression(power)
	if err != nil {
		return term{}, err
	}
	return j.binary(left, operator, right)
}

func (j *jsonata) conditional(condition term) (term, error) {
	yes, err := j.expression(0)
	no := term{value: j.constant("null"), truth: yes.truth}
	if err == nil && j.sign(":") {
		no, err = j.expression(0)
	}
	if err != nil {
		return term{}, err
	}
	text := fmt.Sprintf("if %s then %s else %s end", j.truthful(condition), j.operand(yes.value), j.operand(no.value))
	return term{j.jq("%s", text), yes.truth && no.truth}, nil
}

// truthful writes a condition. What is neither true nor false counts otherwise in jq.
func (j *jsonata) truthful(t term) string {
	if !t.truth {
		j.note("JSONata takes 0, an empty text and an empty list for false; here only null and false are")
	}
	return j.operand(t.value)
}

func (j *jsonata) binary(left term, operator string, right term) (term, error) {
	l, r := j.operand(left.value), j.operand(right.value)
	switch operator {
	case "+", "-", "*", "/", "%":
		return term{value: j.jq("%s %s %s", l, operator, r)}, nil
	case "&":
		j.note("a text is joined with null where nothing is there; JSONata joins it with nothing")
		parts := append(pieces(left.value), pieces(right.value)...)
		return term{value: j.joined(parts)}, nil
	case "=":
		return term{j.equal(left.value, right.value, "=="), true}, nil
	case "!=":
		return term{j.equal(left.value, right.value, "!="), true}, nil
	case "<", "<=", ">", ">=":
		guard := ""
		for _, side := range []*value{left.value, right.value} {
			if side.form != formConstant {
				guard += j.operand(side) + " != null and "
			}
		}
		return term{j.jq("%s%s %s %s", guard, l, operator, r), true}, nil
	case "and", "or":
		return term{j.jq("%s %s %s", j.truthful(left), operator, j.truthful(right)), true}, nil
	case "in":
		return term{j.jq("%s as $one | %s | if type == \"array\" then any(. == $one) else . == $one end", l, r), true}, nil
	}
	return term{}, fmt.Errorf("%q is not translated", operator)
}

// pieces are the parts of a text.
func pieces(v *value) []*value {
	if v.form == formText {
		return v.parts
	}
	return []*value{v}
}

// jsonataFunctions are the functions with a match in jq: over how many arguments, and what, and whether that is true or false.
var jsonataFunctions = map[string]struct {
	arguments int
	jq        string
	truth     bool
}{
	"$not":          {1, "%[1]s | not", true},
	"$exists":       {1, "%[1]s != null", true},
	"$count":        {1, "%[1]s | if type == \"array\" then length elif . == null then 0 else 1 end", false},
	"$length":       {1, "%[1]s | length", false},
	"$string":       {1, "%[1]s | tostring", false},
	"$number":       {1, "%[1]s | tonumber", false},
	"$sum":          {1, "%[1]s | add // 0", false},
	"$max":          {1, "%[1]s | max", false},
	"$min":          {1, "%[1]s | min", false},
	"$abs":          {1, "%[1]s | fabs", false},
	"$floor":        {1, "%[1]s | floor", false},
	"$ceil":         {1, "%[1]s | ceil", false},
	"$uppercase":    {1, "%[1]s | ascii_upcase", false},
	"$lowercase":    {1, "%[1]s | ascii_downcase", false},
	"$trim":         {1, "%[1]s | trim", false},
	"$contains":     {2, "%[2]s as $part | %[1]s | contains($part)", true},
	"$split":        {2, "%[2]s as $at | %[1]s | split($at)", false},
	"$join":         {2, "%[2]s as $between | %[1]s | join($between)", false},
	"$merge":        {1, "%[1]s | add", false},
	"$append":       {2, "[%[1]s, %[2]s | if type == \"array\" then .[] elif . == null then empty else . end]", false},
	"$keys":         {1, "%[1]s | keys", false},
	"$lookup":       {2, "%[1]s[%[2]s]", false},
	"$parse":        {1, "%[1]s | fromjson", false},
	"$base64encode": {1, "%[1]s | @base64", false},
	"$base64decode": {1, "%[1]s | @base64d", false},
	"$range":        {3, "[range(%[1]s; %[2]s + (if %[3]s > 0 then 1 else -1 end); %[3]s)]", false},
	"$substring":    {3, "%[2]s as $from | %[3]s as $length | %[1]s[$from:$from + $length]", false},
}

func (j *jsonata) function(name string, args []term) (term, error) {
	if slices.Contains([]string{"$now", "$millis", "$random", "$uuid"}, name) {
		return term{}, fmt.Errorf("%s differs each time, and an expression here must not: let the agent make it, or take .job.id or .job.startedAt", name)
	}
	f, known := jsonataFunctions[name]
	if !known || f.arguments != len(args) {
		return term{}, fmt.Errorf("%s with %s is not translated", name, strconv.Itoa(len(args))+" arguments")
	}
	texts := make([]any, len(args))
	for i, a := range args {
		texts[i] = j.operand(a.value)
	}
	if name == "$not" {
		texts[0] = j.truthful(args[0])
	}
	return term{j.jq(f.jq, texts...), f.truth}, nil
}
