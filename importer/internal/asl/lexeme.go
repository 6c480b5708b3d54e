package asl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// lexeme is the smallest piece of an expression of JSONata.
type lexeme struct {
	kind lexemeKind
	text string
}

type lexemeKind int

const (
	tokenEnd lexemeKind = iota
	tokenName
	tokenVariable
	tokenNumber
	tokenString
	tokenSign
)

var jsonataToken = regexp.MustCompile(`^(?:(\s+)|(/\*(?s:.*?)\*/)|(\$[A-Za-z0-9_]*)|([A-Za-z_][A-Za-z0-9_]*|` + "`[^`]*`" + `)|([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(\*\*|~>|:=|!=|<=|>=|\.\.|[][(){}.,:;?&+*/%=<>@#^|!-]))`)

// scanned takes an expression apart.
func scanned(text string) ([]lexeme, error) {
	var tokens []lexeme
	for text != "" {
		if text[0] == '"' || text[0] == '\'' {
			t, rest, err := scanString(text)
			if err != nil {
				return nil, err
			}
			tokens, text = append(tokens, t), rest
			continue
		}
		m := jsonataToken.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%q is not read", clip(text))
		}
		text = text[len(m[0]):]
		for i, k := range []lexemeKind{tokenVariable, tokenName, tokenNumber, tokenSign} {
			if m[i+3] != "" {
				tokens = append(tokens, lexeme{k, strings.Trim(m[i+3], "`")})
			}
		}
	}
	return tokens, nil
}

// scanString reads a text between quotes of either kind.
func scanString(text string) (lexeme, string, error) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		if text[i] == '\\' {
			i++
			continue
		}
		if text[i] != quote {
			continue
		}
		inside := text[1:i]
		if quote == '\'' {
			inside = strings.ReplaceAll(strings.ReplaceAll(inside, `\'`, `'`), `"`, `\"`)
		}
		n, err := decodeJSON([]byte(`"` + inside + `"`))
		if err != nil {
			return lexeme{}, "", fmt.Errorf("the text %s cannot be read", clip(text[:i+1]))
		}
		return lexeme{tokenString, n.text}, text[i+1:], nil
	}
	return lexeme{}, "", errors.New("a text has no end")
}
