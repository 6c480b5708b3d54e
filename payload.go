package makegood

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
)

// Payload refers to bytes that are too large for a message: up to MaxLargePayloadBytes of any kind, kept in the
// payload store of a deployment for one job. In JSON it is an object with the one member "$payload", and it may stand
// wherever a value may: in the input of a job, in the output of a step, and in a value that an expression passes on. A
// reader of the bytes verifies them by SHA256.
type Payload struct {
	// SHA256 is the hash of the bytes, as 64 hex digits in lower case, and Bytes their number.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Type is the media type of the bytes, such as application/pdf; empty: none was given. At most 100 bytes.
	Type string `json:"type,omitempty"`
	// By is the agent that wrote the bytes; empty: the submitter of the job wrote them.
	By string `json:"by,omitempty"`
}

// PayloadJSON is the Type of a payload that is JSON.
const PayloadJSON = "application/json"

// String names the bytes in short, for people.
func (p Payload) String() string {
	text := fmt.Sprintf("sha256:%.12s, %d bytes", p.SHA256, p.Bytes)
	if p.Type != "" {
		text += ", " + p.Type
	}
	return text
}

// Check returns the error in a reference; nil: it is well formed. It does not ask whether the bytes exist.
func (p Payload) Check() error {
	switch {
	case len(p.SHA256) != 64 || strings.Trim(p.SHA256, "0123456789abcdef") != "":
		return fmt.Errorf("sha256 is %.80q: want 64 hex digits in lower case", p.SHA256)
	case p.Bytes < 0 || p.Bytes > MaxLargePayloadBytes:
		return fmt.Errorf("bytes is %d: want 0 to %d", p.Bytes, MaxLargePayloadBytes)
	case p.By != "" && limits.AgentName.Check(p.By) != nil:
		return fmt.Errorf("by: %w", limits.AgentName.Check(p.By))
	}
	return limits.CheckPayloadType(p.Type)
}

// plainPayload is a Payload without its methods, in the order of canonical JSON.
type plainPayload struct {
	By     string `json:"by,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Type   string `json:"type,omitempty"`
}

// MarshalJSON writes p as the object that stands for it; no member is null.
func (p Payload) MarshalJSON() ([]byte, error) {
	if p == (Payload{}) {
		return []byte("null"), nil
	}
	return json.Marshal(map[string]plainPayload{limits.PayloadMark: {By: p.By, Bytes: p.Bytes, SHA256: p.SHA256, Type: p.Type}})
}

// UnmarshalJSON reads the object that MarshalJSON writes, and refuses any other.
func (p *Payload) UnmarshalJSON(text []byte) error {
	if string(bytes.TrimSpace(text)) == "null" {
		*p = Payload{}
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("a payload is an object with the member %s: %w", limits.PayloadMark, err)
	}
	inner, marked := object[limits.PayloadMark]
	if !marked || len(object) != 1 {
		return fmt.Errorf("a payload is an object with the one member %s, and this has %d: %.80q", limits.PayloadMark, len(object), slices.Sorted(maps.Keys(object)))
	}
	d := json.NewDecoder(bytes.NewReader(inner))
	d.DisallowUnknownFields()
	var plain plainPayload
	err := d.Decode(&plain)
	if mismatch, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		what := "it"
		if mismatch.Field != "" {
			what = mismatch.Field
		}
		err = fmt.Errorf("%s is a JSON %s; want the reference returned when the payload was written", what, mismatch.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", limits.PayloadMark, err)
	}
	read := Payload{By: plain.By, Bytes: plain.Bytes, SHA256: plain.SHA256, Type: plain.Type}
	if err = read.Check(); err != nil {
		return fmt.Errorf("%s: %w", limits.PayloadMark, err)
	}
	*p = read
	return nil
}
