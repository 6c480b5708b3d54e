package deployed

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// maxAnswer is how large an answer of a door may be, in bytes. Lambda lets 6 MB of JSON out of a function, and
	// an answer in base64 is a third longer.
	maxAnswer = 4 << 20
	// maxPlain is how large an answer may be that is not put into base64: as text in JSON a byte may become six.
	maxPlain = 512 << 10
)

// callerOf returns the caller's identity from IAM, as Lambda gives it; empty: IAM was not asked. No part of it is
// written by the caller.
func callerOf(e events.LambdaFunctionURLRequest) string {
	if e.RequestContext.Authorizer == nil || e.RequestContext.Authorizer.IAM == nil {
		return ""
	}
	return e.RequestContext.Authorizer.IAM.UserARN
}

// requestOf makes a request from an event. The API reads one of its headers; those that guard a server on loopback
// against other origins are pointless behind a signature.
func requestOf(ctx context.Context, e events.LambdaFunctionURLRequest) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, fmt.Errorf("the body is not base64: %w", err)
		}
	}
	target := "http://localhost" + e.RawPath
	if e.RawQueryString != "" {
		target += "?" + e.RawQueryString
	}
	r, err := http.NewRequestWithContext(ctx, e.RequestContext.HTTP.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range e.Headers {
		if strings.EqualFold(name, "Content-Type") {
			r.Header.Set("Content-Type", value)
		}
	}
	return r, nil
}

// written is an answer under construction.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (w *written) Header() http.Header { return w.header }

// WriteHeader takes the status.
func (w *written) WriteHeader(status int) { w.status = status }

func (w *written) Write(p []byte) (int, error) { return w.body.Write(p) }

// response returns the answer as Lambda takes it.
func (w *written) response() events.LambdaFunctionURLResponse {
	if w.body.Len() > maxAnswer {
		return problem(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the answer has %d bytes, and a door lets out %d: ask without payloads (?payloads=false)", w.body.Len(), maxAnswer))
	}
	headers := map[string]string{}
	for name, values := range w.header {
		headers[name] = strings.Join(values, ", ")
	}
	answer := events.LambdaFunctionURLResponse{StatusCode: w.status, Headers: headers, Body: w.body.String()}
	if w.body.Len() > maxPlain || !utf8.Valid(w.body.Bytes()) {
		answer.Body, answer.IsBase64Encoded = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	return answer
}
