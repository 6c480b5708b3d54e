// Package signed asks services of AWS a question by a signed request, for what is asked once and would otherwise be a
// dependency more. It knows no service's protocol: who asks writes the body and reads the answer.
package signed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// shown is how much of an answer an error shows, in bytes.
const shown = 500

// Question is a request to a service.
type Question struct {
	// Service is the name that the signature is for, and with which the host begins.
	Service string
	// Method and Path default to POST and /.
	Method, Path string
	Headers      map[string]string
	Body         []byte
}

// StatusError is an answer other than 200.
type StatusError struct {
	Service string
	Code    int
	Text    string
}

// Error says what was answered.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answers %d %s: %.*s", e.Service, e.Code, http.StatusText(e.Code), shown, e.Text)
}

// Ask returns the body of the answer. Where AWS_ENDPOINT_URL is set, what answers there is asked. An answer other than
// 200 is a *StatusError.
func Ask(ctx context.Context, c aws.Config, q Question) ([]byte, error) {
	request, err := q.request(ctx, c)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", q.Service, err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", q.Service, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, &StatusError{Service: q.Service, Code: answer.StatusCode, Text: string(text)}
	}
	return text, nil
}

func (q Question) request(ctx context.Context, c aws.Config) (*http.Request, error) {
	address := "https://" + q.Service + "." + c.Region + ".amazonaws.com"
	if endpoint := os.Getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		address = endpoint
	}
	method, path := q.Method, q.Path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/"
	}
	request, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range q.Headers {
		request.Header.Set(name, value)
	}
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	hash := sha256.Sum256(q.Body)
	return request, v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(hash[:]), q.Service, c.Region, time.Now())
}
