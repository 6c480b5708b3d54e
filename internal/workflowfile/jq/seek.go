package jq

import (
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// seekers do what index, rindex and indices do. gojq compares each place of its input with all of its argument.
var seekers = map[string]string{"index": "_index_bounded", "rindex": "_rindex_bounded", "indices": "_indices_bounded"}

// seeking makes them known to the compiler.
func (m *meter) seeking() ([]gojq.CompilerOption, error) {
	var all []gojq.CompilerOption
	for name, ours := range seekers {
		own, err := native("$a | " + name + "($b)")
		if err != nil {
			return nil, err
		}
		all = append(all, gojq.WithFunction(ours, 1, 1, func(v any, args []any) any {
			text, isText := v.(string)
			wanted, both := args[0].(string)
			if isText && both {
				return m.find(name, text, wanted)
			}
			if err := m.lookPair(v, args[0]); err != nil {
				return err
			}
			found := own(v, args[0], nil)
			return passed(found, m.shallow(found))
		}))
	}
	return all, nil
}

// find finds a text in another, by the number of the character at which it begins there.
func (m *meter) find(name, text, wanted string) any {
	const comparedAtOnce = 64
	if err := m.count(2*(len(text)+len(wanted)) + len(text)*len(wanted)/comparedAtOnce); err != nil {
		return err
	}
	text, wanted = characters(text), characters(wanted)
	places := []any{}
	for at, count := 0, 0; wanted != ""; {
		next := strings.Index(text[at:], wanted)
		if next < 0 {
			break
		}
		count += utf8.RuneCountInString(text[at : at+next])
		if places = append(places, count); name == "index" {
			break
		}
		_, size := utf8.DecodeRuneInString(text[at+next:])
		at, count = at+next+size, count+1
	}
	switch {
	case name == "indices":
		return passed(places, m.shallow(places))
	case len(places) == 0:
		return nil
	default:
		return places[len(places)-1]
	}
}

// characters returns a text with the characters that gojq substitutes for invalid UTF-8.
func characters(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
