package jq

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/makegood-dev/makegood/internal/plain"
)

// lookMatching names the check before a function that matches a regular expression: whether it needs the first match or
// all matches, whether the flags decide, or whether it also cuts out the text between.
var lookMatching = map[string]string{
	"test": lookOnce, "match": lookEach, "capture": lookEach, "scan": lookAll, "split": lookSlices, "splits": lookSlices,
}

// matchings makes the functions that look at patterns known to the compiler.
func (m *meter) matchings() []gojq.CompilerOption {
	look := func(name string, wanted func(flags string) search) gojq.CompilerOption {
		return gojq.WithFunction(name, 2, 2, func(v any, args []any) any { return passed(v, m.lookPattern(v, args[0], args[1], wanted)) })
	}
	return []gojq.CompilerOption{
		look(lookOnce, func(string) search { return search{} }),
		look(lookEach, func(flags string) search { return search{all: strings.Contains(flags, "g")} }),
		look(lookAll, func(string) search { return search{all: true} }),
		look(lookSlices, func(string) search { return search{all: true, slices: true} }),
		gojq.WithFunction(replaced, 1, 1, func(v any, args []any) any { return m.replace(args[0].(string), v.([]any)) }),
	}
}

// search is how a pattern is looked for: all matches, and whether the texts between them are wanted, too.
type search struct{ all, slices bool }

// expression is a regular expression, as far as an evaluation has come by it.
type expression struct {
	plain.PatternSize
	// first finds the first match, and next one behind a character, which it can look back at; nil: gojq reports the error.
	first, next *regexp.Regexp
	err         error
}

// The costs of a regular expression: of reading a byte, of a state, and of matching a byte of text, by itself and for
// each state.
const (
	perPatternByte = 512
	perStateMade   = 256
	perByte        = 16
	perState       = 2
)

// lookPattern limits a regular expression and its text, and counts the cost of matching: the texts that are read, by
// each state, and for each match the result of gojq and the characters that it counts anew.
func (m *meter) lookPattern(text, given, flagsGiven any, wanted func(flags string) search) error {
	if list, ok := given.([]any); ok && len(list) > 0 && flagsGiven == nil {
		given = list[0]
		if len(list) > 1 {
			flagsGiven = list[1]
		}
	}
	source, isPattern := given.(string)
	s, isText := text.(string)
	flags, _ := flagsGiven.(string)
	switch {
	case !isPattern || !isText:
		return nil // gojq will say so
	case len(s) > maxMatched:
		return fmt.Errorf("a regular expression on a text of %d bytes, the limit is %d", len(s), maxMatched)
	}
	e := m.expression(source, flags)
	if e.err != nil || e.first == nil {
		return e.err
	}
	search := wanted(flags)
	if !search.all {
		return m.count((len(s) + 1) * (perByte + perState*e.States))
	}
	matches, err := m.matches(e, s)
	if err != nil {
		return err
	}
	const countedAtOnce, slicedAtOnce = 8, 4
	made := matches * (1 + e.Groups) * (elementBytes + 4*memberBytes + len(s)/countedAtOnce)
	if search.slices {
		made += matches * len(s) / slicedAtOnce
	}
	return m.count(made)
}

// expression compiles a regular expression once in an evaluation, as gojq does.
func (m *meter) expression(source, flags string) expression {
	key := [2]string{source, flags}
	if known, ok := m.expressions[key]; ok {
		return known
	}
	e := expression{err: m.count(perPatternByte * len(source))}
	if e.err == nil {
		e.PatternSize, e.err = plain.SizeOf(source)
	}
	if e.err == nil {
		e.err = m.count(perStateMade * e.States)
	}
	if e.err == nil {
		e.first, e.next = compiled(source, flags)
	}
	if m.expressions == nil {
		m.expressions = map[[2]string]expression{}
	}
	m.expressions[key] = e
	return e
}

// compiled compiles a regular expression with the flags of jq; nil: it is invalid.
func compiled(source, flags string) (first, next *regexp.Regexp) {
	if strings.Contains(flags, "i") {
		source = "(?i)" + source
	}
	if strings.Contains(flags, "m") {
		source = "(?s)" + source
	}
	first, err := regexp.Compile("(" + source + ")")
	if err != nil {
		return nil, nil
	}
	next, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + source + ")")
	if err != nil {
		return nil, nil
	}
	return first, next
}

// matches counts all matches in a text, and the bytes read to find them: where no match is found early, the rest of the
// text is read behind each.
func (m *meter) matches(e expression, text string) (matches int, err error) {
	each := perByte + perState*e.States
	for at := 0; at <= len(text); {
		// The search behind a match begins with the character before.
		re, from := e.first, at
		if at > 0 {
			_, size := utf8.DecodeLastRuneInString(text[:at])
			re, from = e.next, at-size
		}
		left := max(0, m.most-m.bytes) / each
		r := &reading{text: text[from:], most: left}
		found := re.FindReaderSubmatchIndex(r)
		if err := m.count(each * (1 + r.read)); err != nil {
			return matches, err
		}
		if found == nil {
			break
		}
		matches++
		begin, end := from+found[2], from+found[3]
		at = end
		if begin == end {
			_, size := utf8.DecodeRuneInString(text[end:])
			at = end + max(1, size)
		}
	}
	return matches, nil
}

// reading reads a text up to a limit, and counts the bytes read.
type reading struct {
	text       string
	read, most int
}

// ReadRune reads a character; see io.RuneReader.
func (r *reading) ReadRune() (rune, int, error) {
	if r.read > r.most || r.text == "" {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	r.read++
	return c, size, nil
}

// replace puts texts in the place of matches, each [OFFSET, LENGTH, [TEXT, ...]]: the first text of each makes one
// result, the second another. Without matches the text stays.
func (m *meter) replace(text string, matches []any) any {
	var results []*strings.Builder
	at, place := 0, 0 // bytes, and the characters that they are
	to := func(offset int) string {
		begin := at
		for ; place < offset && at < len(text); place++ {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
		return text[begin:at]
	}
	for _, match := range matches {
		parts := match.([]any)
		offset, length := parts[0].(int), parts[1].(int)
		between := to(offset)
		for i, s := range parts[2].([]any) {
			put, isText := s.(string)
			if !isText && s != nil {
				return m.plus(between, s, nil)
			}
			if err := m.count(len(between) + len(put)); err != nil {
				return err
			}
			if i == len(results) {
				results = append(results, &strings.Builder{})
			}
			results[i].WriteString(between)
			results[i].WriteString(put)
		}
		to(offset + length)
	}
	if len(results) == 0 {
		return []any{text}
	}
	all := make([]any, len(results))
	for i, result := range results {
		if err := m.count(elementBytes + len(text) - at); err != nil {
			return err
		}
		result.WriteString(text[at:])
		all[i] = result.String()
	}
	return all
}
