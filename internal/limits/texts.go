package limits

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip shortens a text to MaxReasonBytes at a character's edge, and replaces the characters that no queue carries:
// bytes that are not UTF-8, U+FFFE and U+FFFF.
func Clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.NewReplacer("\uFFFE", "\uFFFD", "\uFFFF", "\uFFFD").Replace(text)
	if len(text) <= MaxReasonBytes {
		return text
	}
	return Cut(text, MaxReasonBytes-len("...")) + "..."
}

// Cut returns at most so many bytes of a text, and no part of a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Shorten returns at most so many bytes of a text, and says that there were more.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Cut(text, most) + "..."
}

// CheckWho refuses an invalid name of a caller: more than MaxWhoBytes, or not a text in one line.
func CheckWho(who string) error {
	switch {
	case len(who) > MaxWhoBytes:
		return fmt.Errorf("has %d bytes, the limit is %d", len(who), MaxWhoBytes)
	case !utf8.ValidString(who) || strings.ContainsFunc(who, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }):
		return fmt.Errorf("%.40q is no text in one line", who)
	}
	return nil
}

// CheckPayloadType describes the error in the type of a payload; nil: it is valid, or empty.
func CheckPayloadType(text string) error {
	if len(text) > MaxPayloadTypeBytes {
		return fmt.Errorf("type has %d bytes, the limit is %d", len(text), MaxPayloadTypeBytes)
	}
	kind, _, _ := strings.Cut(text, ";")
	of, sub, _ := strings.Cut(strings.TrimSpace(kind), "/")
	if text != "" && (of == "" || sub == "" || strings.ContainsFunc(text, notASCII) || strings.ContainsAny(kind, " \"(),:<=>?@[\\]{}")) {
		return fmt.Errorf("type is %q: want a media type such as application/pdf", text)
	}
	return nil
}

// notASCII: a media type is a header's value in many languages, and some read other bytes as they like.
func notASCII(c rune) bool { return c < ' ' || c > '~' }

// CheckLabels describes the error in the labels of a submission; nil: they are valid.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return fmt.Errorf("there are %d labels, the limit is %d", len(labels), MaxLabels)
	}
	first, wrong := "", error(nil)
	for name, value := range labels { // In any order: the error names the first wrong label by its name.
		if err := CheckLabel(name, value); err != nil && (wrong == nil || name < first) {
			first, wrong = name, err
		}
	}
	return wrong
}

// CheckLabel describes the error in one label; nil: it is valid. Its value is 1 to MaxLabelBytes bytes of text in one
// line.
func CheckLabel(name, value string) error {
	if err := LabelName.Check(name); err != nil {
		return err
	}
	switch {
	case value == "":
		return fmt.Errorf("the label %s has no value", name)
	case len(value) > MaxLabelBytes:
		return fmt.Errorf("the value of the label %s has %d bytes, the limit is %d", name, len(value), MaxLabelBytes)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unprintable):
		return fmt.Errorf("the value of the label %s is %.40q: want text in one line", name, value)
	}
	return nil
}

// unprintable reports whether a character is invisible, or cannot stand in a message of a queue.
func unprintable(c rune) bool { return unicode.IsControl(c) || c == '\uFFFE' || c == '\uFFFF' }

// The effects of a makegood.Offer that would not change the job.
const (
	OfferAlready = "is so already"
	OfferRefused = "refused"
)
