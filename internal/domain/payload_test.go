package domain_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

var report = makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 20 << 20, Type: "application/pdf", By: "report"}

// Whatever a user writes is either a reference as a whole, or refused, or surely none.
func TestNothingIsTakenForAPayloadThatIsNone(t *testing.T) {
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.Replace(string(text), "$payload", `\u0024payload`, 1)
	for value, want := range map[string][]makegood.Payload{
		`null`:                                   nil,
		`{"payload":{"sha256":"x"}}`:             nil,
		`"$payload"`:                             nil,
		`["$payload"]`:                           nil,
		string(text):                             {report},
		escaped:                                  {report},
		fmt.Sprintf(`{"a":[%s,%s]}`, text, text): {report},
	} {
		got, err := domain.FindPayloads(json.RawMessage(value))
		if !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s: got %v, %v, want %v", value, got, err, want)
		}
	}
	for value, want := range map[string]string{
		`{"a":[{"$payload":1}]}`:                   "at .a[0]: $payload: it is a JSON number; want the reference",
		`{"\u0024payload":{}}`:                     "sha256 is",
		`{"$payload":null}`:                        "sha256 is",
		`{"b":{"$payload":{"bytes":1},"other":1}}`: "at .b: a payload is an object with the one member $payload, and this has 2",
		many(limits.MaxPayloadRefs + 1):            "more than 100 payloads",
	} {
		if _, err := domain.FindPayloads(json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", value, err, want)
		}
	}
	if found, err := domain.FindPayloads(json.RawMessage(many(limits.MaxPayloadRefs))); len(found) != limits.MaxPayloadRefs || err != nil {
		t.Errorf("got %d, %v, want %d", len(found), err, limits.MaxPayloadRefs)
	}
}

func many(n int) string {
	var all []string
	for i := range n {
		text, err := json.Marshal(makegood.Payload{SHA256: fmt.Sprintf("%064x", i), Bytes: 1})
		if err != nil {
			panic(err)
		}
		all = append(all, string(text))
	}
	return "[" + strings.Join(all, ",") + "]"
}
