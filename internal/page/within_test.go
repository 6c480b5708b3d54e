package page

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/makegood-dev/makegood/client"
)

// within returns a client of an API in this process: its requests are calls, and reach no network.
func within(t *testing.T, api http.Handler) *client.Client {
	t.Helper()
	c, err := client.New("http://localhost", client.WithHTTPClient(&http.Client{Transport: calls{api}}), client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calls carries a request to a handler.
type calls struct{ api http.Handler }

func (c calls) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	c.api.ServeHTTP(answer, r)
	return answer.Result(), nil
}
