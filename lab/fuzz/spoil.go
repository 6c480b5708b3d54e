package main

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	numbers = regexp.MustCompile(`-?\d+(\.\d+)?`)
	texts   = regexp.MustCompile(`"[^"\\]*"`)
)

// values are what a number or a text is replaced by.
var values = []string{
	"0", "-1", "1", "2", "3", "9223372036854775807", "9223372036854775808", "1e999", "1.5", "null", "true", `""`, `"a"`, "[]", "{}", `"\u0000"`, `"\ud800"`,
	`"job-1"`, `"job-2"`, `"nobody"`, `"order"`, `"reserve"`, `"ship"`, `"agent:1"`, `"events"`, `"Submit"`, `"StepSucceeded"`, `"StepFailed"`,
	`"2026-11-20T12:00:00Z"`, `"9999-12-31T23:59:59.999999999Z"`, `"0001-01-01T00:00:00Z"`, `"refuse"`, `"busy"`,
}

// scraps are what is put in anywhere.
var scraps = []string{"{", "}", "[", "]", ",", ":", `"`, `\`, "\x00", "\xff", "\xed\xa0\x80", "\uFFFE", "\uFEFF", "\n", `{"v":1,`, `,"type":"Submit"`, `,"attempt":1`, "${ .input }", "1e9"}

// spoil returns a message of the corpus: one in five as it is, the others after one to three changes.
func spoil(random *rand.Rand, corpus []string) string {
	pick := func() string { return corpus[random.IntN(len(corpus))] }
	body := pick()
	if random.IntN(5) == 0 {
		return body
	}
	for range 1 + random.IntN(3) {
		body = spoilOnce(random, body, pick)
	}
	return body
}

func spoilOnce(random *rand.Rand, body string, pick func() string) string {
	from := random.IntN(len(body) + 1)
	to := from + random.IntN(min(len(body)-from, 40)+1)
	switch random.IntN(16) {
	case 0:
		return body[:from] + string([]byte{byte(random.IntN(256))}) + body[min(from+1, len(body)):]
	case 1:
		return body[:from] + body[to:]
	case 2:
		return body[:to] + body[from:]
	case 3:
		return body[:from] + scraps[random.IntN(len(scraps))] + body[from:]
	case 4:
		other := pick()
		return body[:from] + other[random.IntN(len(other)):]
	case 5:
		if random.IntN(200) > 0 {
			return body
		}
		return body[:from] + strings.Repeat(scraps[random.IntN(len(scraps))], 1+random.IntN(300_000)) + body[from:]
	case 6, 7, 8:
		return exchange(random, numbers, body, values)
	case 9, 10, 11, 12:
		return exchange(random, texts, body, values)
	default:
		return exchange(random, texts, body, texts.FindAllString(pick(), -1))
	}
}

// exchange puts one of others in the place of something in body that matches.
func exchange(random *rand.Rand, what *regexp.Regexp, body string, others []string) string {
	// Of a large body only the beginning is looked at: it was spoilt as a whole before.
	places := what.FindAllStringIndex(body[:min(len(body), 4<<10)], -1)
	if len(places) == 0 || len(others) == 0 {
		return body
	}
	at := places[random.IntN(len(places))]
	return body[:at[0]] + others[random.IntN(len(others))] + body[at[1]:]
}

// kindOf returns a reason without what it quotes and counts, so that reasons can be counted.
func kindOf(reason string) string {
	reason = numbers.ReplaceAllString(texts.ReplaceAllString(reason, `"..."`), "N")
	if utf8.RuneCountInString(reason) > 40 {
		reason = string([]rune(reason)[:40])
	}
	return reason
}
