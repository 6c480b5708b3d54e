package makegood_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

var report = makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 20 << 20, Type: "application/pdf", By: "report"}

func TestAPayloadReadsWhatItWritesAndNothingElse(t *testing.T) {
	text, err := json.Marshal(report)
	want := `{"$payload":{"by":"report","bytes":20971520,"sha256":"` + report.SHA256 + `","type":"application/pdf"}}`
	if string(text) != want || err != nil {
		t.Fatalf("got %s, %v, want %s", text, err, want)
	}
	var back makegood.Payload
	if err := json.Unmarshal(text, &back); back != report || err != nil {
		t.Errorf("got %+v, %v, want %+v", back, err, report)
	}
	for _, wrong := range []string{
		`{}`, `"x"`, `{"$payload":1}`, `{"$payload":{}}`, `{"$payload":{"sha256":"AA","bytes":1}}`,
		`{"$payload":{"sha256":"` + report.SHA256 + `","bytes":-1}}`,
		fmt.Sprintf(`{"$payload":{"sha256":%q,"bytes":%d}}`, report.SHA256, makegood.MaxLargePayloadBytes+1),
		`{"$payload":{"sha256":"` + strings.ToUpper(report.SHA256) + `","bytes":1}}`,
		`{"$payload":{"sha256":"` + report.SHA256 + `","bytes":1,"url":"http://x"}}`,
		`{"$payload":{"sha256":"` + report.SHA256 + `","bytes":1,"by":"no agent"}}`,
		`{"$payload":{"sha256":"` + report.SHA256 + `","bytes":1},"other":1}`,
	} {
		if err := json.Unmarshal([]byte(wrong), &back); err == nil {
			t.Errorf("%s was taken for %+v", wrong, back)
		} else if strings.Contains(err.Error(), "plainPayload") {
			t.Errorf("%s: %v speaks of Go", wrong, err)
		}
	}
}

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
		got, err := makegood.FindPayloads(json.RawMessage(value))
		if !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s: got %v, %v, want %v", value, got, err, want)
		}
	}
	for value, want := range map[string]string{
		`{"a":[{"$payload":1}]}`:                   "at .a[0]: $payload: it is a JSON number; a reference is",
		`{"\u0024payload":{}}`:                     "sha256 is",
		`{"$payload":null}`:                        "sha256 is",
		`{"b":{"$payload":{"bytes":1},"other":1}}`: "at .b: a payload is an object with the one member $payload, and this has 2",
		many(makegood.MaxPayloadRefs + 1):          "more than 100 payloads",
	} {
		if _, err := makegood.FindPayloads(json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", value, err, want)
		}
	}
	if found, err := makegood.FindPayloads(json.RawMessage(many(makegood.MaxPayloadRefs))); len(found) != makegood.MaxPayloadRefs || err != nil {
		t.Errorf("got %d, %v, want %d", len(found), err, makegood.MaxPayloadRefs)
	}
}

func TestTheTypeOfAPayloadIsAMediaType(t *testing.T) {
	for text, right := range map[string]bool{
		"": true, "application/pdf": true, "text/plain; charset=utf-8": true, "application/vnd.api+json": true,
		"pdf": false, "/": false, "a/": false, "/b": false, "text/plain\n": false, "a b/c": false, "a/<b>": false,
		"a/" + strings.Repeat("b", makegood.MaxPayloadTypeBytes): false,
	} {
		if err := makegood.CheckPayloadType(text); (err == nil) != right {
			t.Errorf("%q: got %v", text, err)
		}
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

func ExamplePayload() {
	output := struct {
		Report makegood.Payload `json:"report"`
		Pages  int              `json:"pages"`
	}{makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 20 << 20, Type: "application/pdf", By: "report"}, 1200}
	fmt.Println(output.Report)
	// Output: sha256:0a0a0a0a0a0a, 20971520 bytes, application/pdf
}
