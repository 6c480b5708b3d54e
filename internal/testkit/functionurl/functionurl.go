// Package functionurl serves the URL of a Lambda function for tests: it checks signatures and runs no function itself.
package functionurl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// service is what requests to a function URL are signed for.
	service = "lambda"
	// maxPayload is how large a request and an answer may be, in bytes.
	maxPayload = 6 << 20
	// maxSkew is how far a signature's time may be from this machine's.
	maxSkew = 5 * time.Minute
	// signedAt is the form of that time.
	signedAt = "20060102T150405Z"
)

// Key is an access key, and its holder.
type Key struct {
	Secret string
	// ARN is the caller's, which the function is told.
	ARN string
	// Denied: the holder's policies do not let them invoke this URL.
	Denied bool
}

// ErrThrottled is the error of an invocation in which no code was run; it may be later.
var ErrThrottled = errors.New("the invocation was throttled")

// URL serves a function's URL for tests, as Lambda does where its AuthType is AWS_IAM, or NONE: it checks the signature
// and its time, refuses keys that are denied, and hands the function an event of format 2.0 with the identity of the
// key.
//
// It is not IAM: access is decided key by key, and no policy, condition or session token is read. It knows no TLS, no
// CORS, no cookies, no query-string signatures and no streams, answers on any host, and leaves out of the event the
// fields that our functions do not read: the account, the address and the time of the caller.
type URL struct {
	// Invoke runs the function on an event and returns its answer. Any error but ErrThrottled is one of the function.
	Invoke func(ctx context.Context, event []byte) ([]byte, error)
	Region string
	// Keys are the access keys that there are, by their ids.
	Keys map[string]Key
	// Public: the URL's AuthType is NONE. No signature is asked for, and the function is told of no caller.
	Public bool
}

// ServeHTTP answers as Lambda's front end does.
func (u *URL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if err != nil {
		lambdaSays(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	var id, refusal string
	if !u.Public {
		id, refusal = u.signer(r, body)
	}
	if refusal == "" && u.Keys[id].Denied {
		refusal = forbidden
	}
	if refusal != "" {
		lambdaSays(w, http.StatusForbidden, refusal)
		return
	}
	event, err := json.Marshal(u.event(r, body, id))
	if err != nil {
		panic(err) // Strings are always JSON.
	}
	answer, err := u.Invoke(r.Context(), event)
	switch {
	case errors.Is(err, ErrThrottled):
		lambdaSays(w, http.StatusTooManyRequests, "Rate Exceeded.")
	case err != nil || len(answer) > maxPayload:
		lambdaSays(w, http.StatusBadGateway, "Internal Server Error")
	default:
		hand(w, answer)
	}
}

// lambdaSays writes an answer that is Lambda's own.
func lambdaSays(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Message": message}) // A caller that has gone needs no answer.
}

// hand writes what the function answered. What is no answer of the format is JSON of the function's own.
func hand(w http.ResponseWriter, body []byte) {
	var a events.LambdaFunctionURLResponse
	if err := json.Unmarshal(body, &a); err != nil || a.StatusCode == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
		return
	}
	text := []byte(a.Body)
	if a.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(a.Body)
		if err != nil {
			lambdaSays(w, http.StatusBadGateway, "Internal Server Error")
			return
		}
		text = decoded
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(text)
}

// authorization is what the header of that name says.
type authorization struct {
	key, scope, signature string
	signed                []string
}

func readAuthorization(header string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			a.key, a.scope, _ = strings.Cut(value, "/")
		case "SignedHeaders":
			a.signed = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, ok && a.key != "" && a.signature != ""
}

// What Lambda says to a caller that it refuses.
const (
	forbidden  = "Forbidden"
	nobodysKey = "The security token included in the request is invalid."
	expired    = "Signature expired"
	mismatched = "The request signature we calculated does not match the signature you provided."
)

// signer returns the id of the key that signed a request, or why it is refused: it signs the request again, and
// compares.
func (u *URL) signer(r *http.Request, body []byte) (id, refusal string) {
	said, ok := readAuthorization(r.Header.Get("Authorization"))
	if !ok {
		return "", forbidden
	}
	key, known := u.Keys[said.key]
	at, err := time.Parse(signedAt, r.Header.Get("X-Amz-Date"))
	switch {
	case !known:
		return "", nobodysKey
	case err != nil || time.Since(at).Abs() > maxSkew:
		return "", expired
	}
	want, err := u.signature(r, body, said, key.Secret, at)
	if err != nil || want.signature != said.signature || want.scope != said.scope {
		return "", mismatched
	}
	return said.key, ""
}

// signature signs a request as its signer did, with this secret.
func (u *URL) signature(r *http.Request, body []byte, said authorization, secret string, at time.Time) (authorization, error) {
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return authorization{}, err
	}
	for name, values := range r.Header {
		if slices.Contains(said.signed, strings.ToLower(name)) {
			again.Header[name] = values
		}
	}
	hash := sha256.Sum256(body)
	by := aws.Credentials{AccessKeyID: said.key, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(r.Context(), by, again, hex.EncodeToString(hash[:]), service, u.Region, at); err != nil {
		return authorization{}, err
	}
	want, _ := readAuthorization(again.Header.Get("Authorization"))
	return want, nil
}

// event is the request in format 2.0.
func (u *URL) event(r *http.Request, body []byte, id string) events.LambdaFunctionURLRequest {
	e := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery, Headers: map[string]string{}, Body: string(body),
	}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	e.Headers["host"] = r.Host
	if query := r.URL.Query(); len(query) > 0 {
		e.QueryStringParameters = map[string]string{}
		for name, values := range query {
			e.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	if !isText(r.Header.Get("Content-Type")) && len(body) > 0 {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // Always an address and a port here.
	e.RequestContext = events.LambdaFunctionURLRequestContext{
		DomainName: r.Host,
		HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: host, UserAgent: r.UserAgent()},
	}
	if !u.Public {
		e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{
			IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{AccessKey: id, UserARN: u.Keys[id].ARN},
		}
	}
	return e
}

// isText reports whether a body of this type is handed over as text.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/xml" || kind == "application/javascript")
}
