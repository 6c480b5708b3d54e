package standin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// WholeAnswers is an HTTP client for the SDK that has read an answer before it gives it. Where the SDK reads it bit by bit
// on a busy machine, answers end before they should; the SDK asks again, and what is counted is something else.
type WholeAnswers struct{ http.Client }

// Do does what http.Client's Do does. When it gives no error, the body is all there.
func (c *WholeAnswers) Do(r *http.Request) (*http.Response, error) {
	response, err := c.Client.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // All of it was read, or that is the error.
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
