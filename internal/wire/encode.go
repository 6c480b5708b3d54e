package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// refusedRaw are the characters that JSON may hold raw and SQS refuses.
var refusedRaw = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

// refusedBegin begins both, and few other characters.
const refusedBegin = "\xef\xbf"

func encode(m any) (string, error) {
	var body strings.Builder
	if err := marshalTo(&body, m); err != nil {
		return "", fmt.Errorf("encode message: %w", err)
	}
	return acceptable(strings.TrimSuffix(body.String(), "\n")), nil
}

// acceptable escapes what SQS refuses.
func acceptable(text string) string {
	if !strings.Contains(text, refusedBegin) {
		return text
	}
	return refusedRaw.Replace(text)
}

// marshalTo writes JSON, and a line's end, without escaping <, > and &, which would make six bytes of each: a payload
// within its limit could become a message over its own.
func marshalTo(body *strings.Builder, m any) error {
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(m)
}
