package deployed

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/notify"
)

const ada = "arn:aws:iam::123456789012:user/ada"

// signed is an event of a request that ada has signed.
func signed(method, path string) events.LambdaFunctionURLRequest {
	return events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: path, Headers: map[string]string{"content-type": "application/json"},
		RequestContext: events.LambdaFunctionURLRequestContext{
			HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{Method: method, Path: path},
			Authorizer: &events.LambdaFunctionURLRequestContextAuthorizerDescription{
				IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: ada},
			},
		},
	}
}

// seen is a request as the API sees it.
type seen struct {
	method, uri, body, kind, host, by string
	others                            int
}

// watched is a door in front of a handler that keeps what it sees, and answers with this body.
func watched(log io.Writer, answer []byte) (*door, *[]seen) {
	all := &[]seen{}
	logger := slog.New(slog.NewJSONHandler(log, nil))
	return &door{name: httpapi.Operate, log: logger, done: func(context.Context) {}, api: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		by, _ := r.Context().Value(callerKey{}).(string)
		*all = append(*all, seen{r.Method, r.URL.RequestURI(), string(body), r.Header.Get("Content-Type"), r.Host, by, len(r.Header)})
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/api/jobs/j")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer)
	})}, all
}

func TestAnEventIsTheRequestThatWasSigned(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*events.LambdaFunctionURLRequest)
		want   seen
	}{
		"text":             {func(e *events.LambdaFunctionURLRequest) { e.Body = `{"a":1}` }, seen{body: `{"a":1}`}},
		"base64":           {func(e *events.LambdaFunctionURLRequest) { e.Body, e.IsBase64Encoded = "eyJhIjoxfQ==", true }, seen{body: `{"a":1}`}},
		"a query":          {func(e *events.LambdaFunctionURLRequest) { e.RawQueryString = "a=1&b=%2B" }, seen{uri: "/x?a=1&b=%2B"}},
		"a value twice":    {func(e *events.LambdaFunctionURLRequest) { e.RawQueryString = "a=1&a=2" }, seen{uri: "/x?a=1&a=2"}},
		"an escaped path":  {func(e *events.LambdaFunctionURLRequest) { e.RawPath = "/x%2Fy" }, seen{uri: "/x%2Fy"}},
		"another spelling": {func(e *events.LambdaFunctionURLRequest) { e.Headers = map[string]string{"Content-TYPE": "text/plain"} }, seen{kind: "text/plain"}},
		// What guards a server on loopback from the pages of others says nothing here, and is not handed on.
		"other headers": {func(e *events.LambdaFunctionURLRequest) {
			e.Headers["origin"], e.Headers["sec-fetch-site"], e.Headers["host"], e.Headers["x-by"] = "https://evil", "cross-site", "evil", "eve"
		}, seen{}},
	} {
		d, all := watched(io.Discard, []byte(`{}`))
		e := signed("POST", "/x")
		c.change(&e)
		answer, err := d.answer(t.Context(), e)
		if err != nil || answer.StatusCode != http.StatusCreated || len(*all) != 1 {
			t.Fatalf("%s: got %+v, %v", name, answer, err)
		}
		want := seen{"POST", "/x", c.want.body, "application/json", "localhost", ada, 1}
		if c.want.uri != "" {
			want.uri = c.want.uri
		}
		if c.want.kind != "" {
			want.kind = c.want.kind
		}
		if got := (*all)[0]; got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// An event without an identity was made by somebody who may invoke the function, past its URL; or the URL asks
// nobody. One that is no request is refused with what is wrong.
func TestAnEventWithoutAnIdentityIsForbidden(t *testing.T) {
	var log bytes.Buffer
	d, all := watched(&log, nil)
	nobody, anonymous, unsigned := signed("POST", "/x"), signed("POST", "/x"), signed("POST", "/x")
	nobody.RequestContext.Authorizer = nil
	anonymous.RequestContext.Authorizer.IAM = nil
	unsigned.RequestContext.Authorizer.IAM = &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{AccessKey: "AKIA"}
	for _, e := range []events.LambdaFunctionURLRequest{nobody, anonymous, unsigned, {}} {
		answer, err := d.answer(t.Context(), e)
		if err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(answer.Body, "AuthType must be AWS_IAM") {
			t.Errorf("got %+v, %v, want 403 with the reason", answer, err)
		}
	}
	garbled, crooked := signed("POST", "/x"), signed("P OST", "/x")
	garbled.Body, garbled.IsBase64Encoded = "%", true
	for _, e := range []events.LambdaFunctionURLRequest{garbled, crooked} {
		if answer, err := d.answer(t.Context(), e); err != nil || answer.StatusCode != http.StatusBadRequest || !strings.Contains(answer.Body, `"error":`) {
			t.Errorf("got %+v, %v, want 400 with the reason", answer, err)
		}
	}
	if len(*all) != 0 || strings.Count(log.String(), "without an identity") != 4 {
		t.Errorf("the API saw %+v, and the log says %s", *all, &log)
	}
}

// The log says who asked for what, and what came of it; no line shows a payload.
func TestADoorLogsWhoAsked(t *testing.T) {
	var log bytes.Buffer
	d, _ := watched(&log, []byte(`"PRIVATE"`))
	e := signed("POST", "/api/jobs")
	e.Body = `{"input":"PRIVATE"}`
	if _, err := d.answer(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Msg, Door, By, Method, Path, Location string
		Status                                int
	}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	if line.Msg != "answered" || line.Door != "operate" || line.By != ada || line.Path != "/api/jobs" || line.Location != "/api/jobs/j" || line.Status != 201 || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("got %s", &log)
	}
}

// Lambda lets 6 MB of JSON out of a function, in which text may grow: what is large goes as base64, and what is
// too large is refused with what to ask instead.
func TestAnAnswerFitsThroughTheDoor(t *testing.T) {
	const lambdaLimit = 6 << 20
	for name, c := range map[string]struct {
		answer []byte
		base64 bool
		status int
	}{
		"small":           {[]byte(`{}`), false, 201},
		"all to escape":   {bytes.Repeat([]byte("<"), maxPlain), false, 201},
		"large":           {bytes.Repeat([]byte("<"), maxPlain+1), true, 201},
		"as large as may": {bytes.Repeat([]byte("<"), maxAnswer), true, 201},
		"not text":        {[]byte{0xff}, true, 201},
		"too large":       {bytes.Repeat([]byte("<"), maxAnswer+1), false, 413},
	} {
		d, _ := watched(io.Discard, c.answer)
		answer, err := d.answer(t.Context(), signed("GET", "/x"))
		if err != nil || answer.StatusCode != c.status || answer.IsBase64Encoded != c.base64 {
			t.Errorf("%s: got %d, base64 %t, %v", name, answer.StatusCode, answer.IsBase64Encoded, err)
		}
		whole, err := json.Marshal(answer)
		if err != nil || len(whole) > lambdaLimit {
			t.Errorf("%s: got %d bytes, %v, and Lambda lets out %d", name, len(whole), err, lambdaLimit)
		}
		body := []byte(answer.Body)
		if c.base64 {
			body, _ = base64.StdEncoding.DecodeString(answer.Body)
		}
		if c.status == 201 && !bytes.Equal(body, c.answer) || c.status == 413 && !strings.Contains(answer.Body, "payloads=false") {
			t.Errorf("%s: got %.100s", name, body)
		}
	}
}

// That nobody was told is as it should be at a door: the stack's Scheduler tells. All else is said.
func TestADoorDoesNotComplainThatItTellsNobody(t *testing.T) {
	var log bytes.Buffer
	l := slog.New(untelling{slog.NewTextHandler(&log, nil)}).With("function", "f")
	l.Warn("waits", "job", "a", "error", silent{}.Announce(context.Background(), notify.Notice{}))
	l.Warn("waits", "job", "b", "error", silent{}.AgentAlert(context.Background(), "x", ""))
	l.Warn("waits", "job", "c", "error", io.ErrUnexpectedEOF)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "job=c") {
		t.Errorf("got %s, want one line, of job c", text)
	}
}

// Where an answer leads to a payload, its log has not the way in.
func TestTheLogOfADoorHasNoSignature(t *testing.T) {
	var log bytes.Buffer
	d := &door{name: httpapi.Read, log: slog.New(slog.NewJSONHandler(&log, nil)), done: func(context.Context) {}, api: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://bucket.example/key?X-Amz-Signature=secret")
		w.WriteHeader(http.StatusSeeOther)
	})}
	answer, err := d.answer(t.Context(), signed("GET", "/x"))
	if err != nil || answer.StatusCode != http.StatusSeeOther || !strings.HasSuffix(answer.Headers["Location"], "=secret") {
		t.Errorf("got %+v, %v, want it handed on", answer, err)
	}
	if text := log.String(); !strings.Contains(text, `"location":"https://bucket.example/key"`) || strings.Contains(text, "secret") {
		t.Errorf("the log says %s", text)
	}
}

// The door of completion tokens asks nobody who they are. Its log has no link: whoever read it could answer.
func TestTheDoorOfCompletionTokensLogsNoToken(t *testing.T) {
	var log bytes.Buffer
	d, all := watched(&log, []byte(`{}`))
	d.name = httpapi.Complete
	for path, logged := range map[string]string{"/complete/c1.secret.code": "/complete/{token}", "/api/completions/fail": "/api/completions/fail"} {
		e := signed("POST", path)
		e.RequestContext.Authorizer = nil
		if answer, err := d.answer(t.Context(), e); err != nil || answer.StatusCode != http.StatusCreated {
			t.Errorf("%s: got %+v, %v, want it handed on", path, answer, err)
		}
		if text := log.String(); !strings.Contains(text, `"path":"`+logged+`"`) || strings.Contains(text, "secret") {
			t.Errorf("%s: the log says %s", path, text)
		}
	}
	if len(*all) != 2 {
		t.Errorf("the API saw %+v", *all)
	}
}
