//go:build linux

package lambdahost

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What sends messages gives them its trace, which the SDK has percent-encoded; other requests pass as they are.
func TestTheTraceOfARequestIsAnAttributeOfItsMessages(t *testing.T) {
	standIn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer standIn.Close()
	host, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	proxy, err := host.Tracing(standIn.URL)
	if err != nil {
		t.Fatal(err)
	}
	const attribute = `"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"Lineage=a:1|b:2"}}`
	for _, c := range []struct{ action, trace, body, want string }{
		{"SendMessage", "Lineage=a:1%7Cb:2", `{"MessageBody":"m"}`, `{"MessageBody":"m",` + attribute + `}`},
		{"SendMessageBatch", "Lineage=a:1%7Cb:2", `{"Entries":[{"Id":"1"},{"Id":"2"}]}`, `{"Entries":[{"Id":"1",` + attribute + `},{"Id":"2",` + attribute + `}]}`},
		{"SendMessage", "", `{"MessageBody":"m"}`, `{"MessageBody":"m"}`},
		{"DeleteMessageBatch", "Lineage=a:1", `{"Entries":[{"Id":"1"}]}`, `{"Entries":[{"Id":"1"}]}`},
		{"SendMessage", "Lineage=a:1", `not JSON`, `not JSON`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Target", "AmazonSQS."+c.action)
		if c.trace != "" {
			request.Header.Set(traceHeader, c.trace)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(got) != c.want {
			t.Errorf("%s %s with trace %q: got %s (%v), want %s", c.action, c.body, c.trace, got, err, c.want)
		}
	}
}
