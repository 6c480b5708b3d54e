package workflowfile

import (
	"errors"
	"strings"
)

// part is a piece of a text: an expression, or literal text between expressions.
type part struct {
	text string
	// expression: text is jq, without ${ and }.
	expression bool
}

// errOpen: an expression has no end. A brace in a jq string or comment is not counted.
var errOpen = errors.New("a ${ without its }; one in a jq string or comment does not end it, and a ${ that is meant as text is written $${")

// split takes a text apart. Literal parts are as they are meant: $${ is ${ in them.
func split(text string) ([]part, error) {
	var parts []part
	var literal strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, "$${"):
			literal.WriteString("${")
			text = text[len("$${"):]
		case strings.HasPrefix(text, "${"):
			end := endOfExpression(text[len("${"):])
			if end < 0 {
				return nil, errOpen
			}
			if literal.Len() > 0 {
				parts = append(parts, part{text: literal.String()})
				literal.Reset()
			}
			parts = append(parts, part{text: text[len("${") : len("${")+end], expression: true})
			text = text[len("${")+end+1:]
		default:
			next := 1 + strings.IndexByte(text[1:], '$')
			if next == 0 {
				next = len(text)
			}
			literal.WriteString(text[:next])
			text = text[next:]
		}
	}
	if literal.Len() > 0 {
		parts = append(parts, part{text: literal.String()})
	}
	return parts, nil
}

// endOfExpression finds the } that ends the jq at the start of text, or gives -1. It reads jq as far
// as it must: strings, with \( ) in them and strings in those, comments, and brackets.
func endOfExpression(text string) int {
	// open holds the open brackets: } for a brace, ) for a parenthesis, i for one in a string, " for a string.
	open := []byte{'}'}
	for i := 0; i < len(text); i++ {
		inString := open[len(open)-1] == '"'
		switch c := text[i]; {
		case inString && c == '\\' && strings.HasPrefix(text[i+1:], "("):
			open = append(open, 'i')
			i++
		case inString && c == '\\':
			i++
		case c == '"' && inString:
			open = open[:len(open)-1]
		case inString:
		case c == '"':
			open = append(open, '"')
		case c == '#':
			i += comment(text[i:]) - 1
		case c == '{':
			open = append(open, '}')
		case c == '(':
			open = append(open, ')')
		case c == '}' || c == ')':
			if open = shut(open, c); len(open) == 0 {
				return i
			}
		}
	}
	return -1
}

// shut closes the innermost bracket that c closes, and the open ones inside: jq will report those. It closes none
// beyond the string that the bracket stands in.
func shut(open []byte, c byte) []byte {
	for i := len(open) - 1; i >= 0; i-- {
		switch {
		case open[i] == c:
			return open[:i]
		case open[i] == 'i':
			if c == ')' {
				return open[:i]
			}
			return open
		}
	}
	return open
}

// comment is how long the jq comment at the start of text is. As jq has it, a backslash goes on with
// a comment on the next line.
func comment(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n', '\r':
			return i
		case '\\':
			if strings.HasPrefix(text[i+1:], "\r\n") {
				i++
			}
			if i+1 < len(text) {
				i++
			}
		}
	}
	return len(text)
}
