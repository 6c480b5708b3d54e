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
	text := strings.TrimSuffix(body.String(), "\n")
	if !strings.Contains(text, refusedBegin) {
		return text, nil
	}
	return refusedRaw.Replace(text), nil
}

// marshalTo writes JSON, and a line's end, without escaping <, > and &, which would make six bytes of each: a payload
// within its limit could become a message over its own.
func marshalTo(body *strings.Builder, m any) error {
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(m)
}
