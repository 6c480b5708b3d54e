package makegood_test

import (
	"encoding/json"
	"fmt"
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

func ExamplePayload() {
	output := struct {
		Report makegood.Payload `json:"report"`
		Pages  int              `json:"pages"`
	}{makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 20 << 20, Type: "application/pdf", By: "report"}, 1200}
	fmt.Println(output.Report)
	// Output: sha256:0a0a0a0a0a0a, 20971520 bytes, application/pdf
}
