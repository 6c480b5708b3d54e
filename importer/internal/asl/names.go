package asl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// snake turns a name of any kind into one that fits [a-z][a-z0-9_]*; empty: there
// is nothing in it to make one of.
func snake(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			out.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			afterSmall := i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]))
			beforeSmall := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterSmall || beforeSmall {
				out.WriteByte('_')
			}
			out.WriteRune(unicode.ToLower(r))
		default:
			out.WriteByte('_')
		}
	}
	words := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '_' })
	text := strings.Join(words, "_")
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		text = "n" + text
	}
	return shortened(text, limits.MaxNameBytes)
}

func shortened(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.TrimRight(text, "_")
}

// names gives each thing a name of its own.
type names map[string]bool

// unique returns the name that is wanted, or one like it that nothing has yet.
func (n names) unique(wanted, otherwise string) string {
	name := wanted
	if name == "" {
		name = otherwise
	}
	if slices.Contains(jqWords, name) {
		name += "_step"
	}
	base := name
	for i := 2; n[name]; i++ {
		end := fmt.Sprintf("_%d", i)
		name = shortened(base, limits.MaxNameBytes-len(end)) + end
	}
	n[name] = true
	return name
}

// kindOf is the kind of error that the name of an error of the language becomes.
func kindOf(name string) string {
	switch {
	case name == "States.Timeout" || name == "States.HeartbeatTimeout":
		return makegood.KindTimeout
	case name == "States.Http.Socket":
		return "connection"
	case strings.HasPrefix(name, "States.Http.StatusCode."):
		return "http_" + snake(strings.TrimPrefix(name, "States.Http.StatusCode."))[1:]
	}
	kind := snake(name)
	if kind == "" {
		return "error"
	}
	return kind
}
