package functionurl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const adasARN = "arn:aws:iam::000000000000:user/ada"

// knocks is a URL whose function answers with what the test gives it, and keeps its events.
type knocks struct {
	*httptest.Server
	answer []byte
	err    error
	events []events.LambdaFunctionURLRequest
}

func listen(t *testing.T) *knocks {
	k := &knocks{answer: []byte(`{"statusCode":201,"headers":{"content-type":"text/plain"},"body":"aGk=","isBase64Encoded":true}`)}
	k.Server = httptest.NewServer(&URL{
		Region: "eu-central-1", Keys: map[string]Key{"ADA": {Secret: "secret", ARN: adasARN}, "EVE": {Secret: "evil", ARN: "arn:eve", Denied: true}},
		Invoke: func(_ context.Context, event []byte) ([]byte, error) {
			var e events.LambdaFunctionURLRequest
			if err := json.Unmarshal(event, &e); err != nil {
				t.Error(err)
			}
			k.events = append(k.events, e)
			return k.answer, k.err
		},
	})
	t.Cleanup(k.Close)
	return k
}

// knock makes a request, changed after it was signed.
func (k *knocks) knock(t *testing.T, key, secret string, at time.Time, change func(*http.Request)) (int, string) {
	t.Helper()
	const body = `{"a":"\u00e9"}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.Server.URL+"/api/jobs/a%3Ab/cancel?x=1&x=2&y=%20", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	hash := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, hex.EncodeToString(hash[:]), "lambda", "eu-central-1", at); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// What is signed reaches the function with the identity of its key, and the function's answer the caller.
func TestASignedRequestReachesTheFunctionWithItsIdentity(t *testing.T) {
	k := listen(t)
	if status, body := k.knock(t, "ADA", "secret", time.Now(), nil); status != http.StatusCreated || body != "hi" {
		t.Fatalf("got %d %q, want the function's answer", status, body)
	}
	e := k.events[0]
	if e.RequestContext.Authorizer == nil || e.RequestContext.Authorizer.IAM.UserARN != adasARN {
		t.Errorf("got the identity %+v, want %s", e.RequestContext.Authorizer, adasARN)
	}
	if e.Version != "2.0" || e.RequestContext.HTTP.Method != "POST" || e.RawPath != "/api/jobs/a%3Ab/cancel" || e.RawQueryString != "x=1&x=2&y=%20" ||
		e.QueryStringParameters["x"] != "1,2" || e.IsBase64Encoded || e.Headers["content-type"] != "application/json" {
		t.Errorf("got %+v", e)
	}
	// A type that is not text comes in base64.
	k.knock(t, "ADA", "secret", time.Now(), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
	u := &URL{Keys: map[string]Key{}}
	binary := httptest.NewRequest(http.MethodPost, "/x", nil)
	if got := u.event(binary, []byte("hi"), ""); !got.IsBase64Encoded || got.Body != base64.StdEncoding.EncodeToString([]byte("hi")) {
		t.Errorf("got %+v, want the body in base64", got)
	}
}

// What is not signed, or not by who may, reaches no function.
func TestARequestThatIsNotSignedAsItShouldIsForbidden(t *testing.T) {
	k := listen(t)
	for name, c := range map[string]struct {
		key, secret string
		at          time.Time
		change      func(*http.Request)
		want        string
	}{
		"unsigned":        {"ADA", "secret", time.Now(), func(r *http.Request) { r.Header.Del("Authorization") }, forbidden},
		"wrong secret":    {"ADA", "guess", time.Now(), nil, "does not match"},
		"nobody's key":    {"BOB", "secret", time.Now(), nil, "is invalid"},
		"old":             {"ADA", "secret", time.Now().Add(-time.Hour), nil, expired},
		"another body":    {"ADA", "secret", time.Now(), func(r *http.Request) { r.Body = io.NopCloser(bytes.NewBufferString(`{"a":"\u00ea"}`)) }, "does not match"},
		"another path":    {"ADA", "secret", time.Now(), func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/api/jobs/c/cancel", "" }, "does not match"},
		"another header":  {"ADA", "secret", time.Now(), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, "does not match"},
		"no policy of it": {"EVE", "evil", time.Now(), nil, forbidden},
	} {
		if status, body := k.knock(t, c.key, c.secret, c.at, c.change); status != http.StatusForbidden || !strings.Contains(body, `"Message":`) || !strings.Contains(body, c.want) {
			t.Errorf("%s: got %d %s, want 403 and %q", name, status, body, c.want)
		}
	}
	if len(k.events) != 0 {
		t.Errorf("the function was invoked with %+v", k.events)
	}
}

// A function that does not answer is Lambda's to speak for.
func TestAFunctionThatDoesNotAnswerIsSpokenFor(t *testing.T) {
	k := listen(t)
	for _, c := range []struct {
		answer []byte
		err    error
		want   int
	}{
		{nil, ErrThrottled, http.StatusTooManyRequests},
		{nil, context.DeadlineExceeded, http.StatusBadGateway},
		{make([]byte, maxPayload+1), nil, http.StatusBadGateway},
		{[]byte(`{"statusCode":200,"body":"!","isBase64Encoded":true}`), nil, http.StatusBadGateway},
		{[]byte(`{"any":"JSON"}`), nil, http.StatusOK},
	} {
		k.answer, k.err = c.answer, c.err
		if status, body := k.knock(t, "ADA", "secret", time.Now(), nil); status != c.want {
			t.Errorf("%v: got %d %.100s, want %d", c.err, status, body, c.want)
		}
	}
}
