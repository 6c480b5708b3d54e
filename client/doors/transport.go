package doors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The names of the doors.
const (
	submit  = "submit"
	read    = "read"
	operate = "operate"
	// complete is the door for holders of a completion token.
	complete = "complete"
)

const (
	// service is what a request to a function URL is signed for.
	service = "lambda"
	// tryTimeout is how long one try may take: a door's function takes 30 s at most, and starts first.
	tryTimeout = 40 * time.Second
	// maxProblem is how much of an answer that is no success is read.
	maxProblem = 64 << 10
)

// transport signs requests and takes each to its door.
type transport struct {
	config Config
	doors  map[string]*url.URL
	signer *v4.Signer
	inner  http.RoundTripper
}

func (t *transport) client() *http.Client {
	t.signer, t.inner = v4.NewSigner(), http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport: t, Timeout: tryTimeout,
		// A function URL never redirects, so a redirect comes from some other server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// doorOf returns the door that a request of the client belongs to.
func doorOf(method, path string) string {
	switch {
	case method == http.MethodGet:
		return read
	case path == "/api/jobs", strings.HasPrefix(path, "/api/jobs/") && strings.HasSuffix(path, "/payloads"):
		return submit
	case strings.HasPrefix(path, "/api/completions/"):
		return complete
	default:
		return operate
	}
}

// RoundTrip makes a request of its own, signed, for each that it is given.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	name := doorOf(r.Method, r.URL.Path)
	door := t.doors[name]
	if door == nil {
		return t.problem(r, http.StatusForbidden, t.nowhere(name)), nil
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	target := *door
	target.Path, target.RawQuery = door.Path+r.URL.Path, r.URL.RawQuery
	signed, err := http.NewRequestWithContext(r.Context(), r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		signed.Header.Set("Content-Type", kind)
	}
	if name != complete {
		if err := t.sign(signed, body); err != nil {
			return nil, err
		}
	}
	answer, err := t.inner.RoundTrip(signed)
	if err != nil {
		return nil, fmt.Errorf("door %s of stack %s: %w", name, t.config.Stack, err)
	}
	return t.explained(r, name, answer)
}

// nowhere says that a door has no address.
func (t *transport) nowhere(name string) string {
	if name == complete {
		return fmt.Sprintf("stack %s has no door for completion tokens: its parameter CompletionLinks makes one", t.config.Stack)
	}
	return fmt.Sprintf("stack %s: the address of its door %s is unknown", t.config.Stack, name)
}

// sign signs a request, with the credentials that stand now.
func (t *transport) sign(r *http.Request, body []byte) error {
	credentials, err := t.config.AWS.Credentials.Retrieve(r.Context())
	if err != nil {
		return fmt.Errorf("AWS credentials: %w", err)
	}
	hash := sha256.Sum256(body)
	if err := t.signer.SignHTTP(r.Context(), credentials, r, hex.EncodeToString(hash[:]), service, t.config.AWS.Region, time.Now()); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// bodyOf reads the body of a request, which is bounded by what a client sends.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// explained returns an answer as the API words it. One that is Lambda's own says what to do about it.
func (t *transport) explained(r *http.Request, name string, answer *http.Response) (*http.Response, error) {
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil {
		return nil, fmt.Errorf("door %s of stack %s: read the answer: %w", name, t.config.Stack, err)
	}
	// Lambda's own answers have a Message; both are read without regard to case.
	var said struct{ Error, Message string }
	if json.Unmarshal(text, &said) == nil && said.Error != "" {
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil
	}
	problem := t.problem(r, answer.StatusCode, t.advice(name, answer.StatusCode, said.Message))
	if after := answer.Header.Get("Retry-After"); after != "" {
		problem.Header.Set("Retry-After", after)
	}
	return problem, nil
}

// advice says what to do about an answer that Lambda gave, and not the door.
func (t *transport) advice(name string, status int, said string) string {
	at := fmt.Sprintf("the door %s of stack %s answered %d", name, t.config.Stack, status)
	if said != "" {
		at += " (" + said + ")"
	}
	switch {
	case status == http.StatusForbidden:
		return at + fmt.Sprintf(": the credentials may not use it. They want lambda:InvokeFunctionUrl and lambda:InvokeFunction on the function %s-%s: "+
			"docs/doors.md has the policy. A signature that is refused for another reason comes of expired credentials or a wrong clock", t.config.Stack, name)
	case status == http.StatusNotFound:
		return at + ": there is no such door; is the stack deployed to its end?"
	case status == http.StatusTooManyRequests:
		return at + ": its function is throttled"
	case status >= http.StatusInternalServerError:
		return at + fmt.Sprintf(": its function failed; its log is /aws/lambda/%s-%s", t.config.Stack, name)
	default:
		return at
	}
}

// problem is an answer in the API's own form, so that the client reads one form only.
func (t *transport) problem(r *http.Request, status int, text string) *http.Response {
	body, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		panic(err) // A map of strings is always JSON.
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
