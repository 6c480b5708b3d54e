// Package plain handles text that people and other programs wrote. It keeps text from drawing where it is shown:
// control characters move a terminal's cursor and repaint it, and those of bidirectional text turn the text beside them
// round. It finds the known name that a misspelt one probably meant, and bounds the size of a regular expression before
// anything is matched. It knows neither terminals nor pages, and no names.
package plain

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// draws reports whether a character does more than stand there.
func draws(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// breaks reports whether a character of several lines may stay.
func breaks(r rune) bool { return r == '\n' || r == '\t' }

// Line is a text on one line: a space stands for what would draw. What is not UTF-8 is not shown.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if draws(r) {
			return ' '
		}
		return r
	}, text)
}

// Text is a text of several lines, with a space for what would draw.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if draws(r) && !breaks(r) {
			return ' '
		}
		return r
	}, text)
}

// Escaped is a text with what would draw written as JSON escapes it: \u202e. JSON means the same then.
func Escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, escapes) {
		return text
	}
	var out bytes.Buffer
	for _, r := range string(text) {
		if escapes(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

func escapes(r rune) bool { return draws(r) && !breaks(r) && r != '\r' }
