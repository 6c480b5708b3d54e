package onhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/payload"
)

// sized is an answer that says how long it is.
func sized(status int, body string) (*http.Response, error) {
	answer, err := answers(status, body)
	answer.ContentLength = int64(len(body))
	return answer, err
}

// A download is asked for with the length of its payload, by whom it was written, and its part.
func TestADownloadSaysWhatIsWanted(t *testing.T) {
	const text = "0123456789"
	for name, c := range map[string]struct {
		by        string
		offset, n int64
		query     string
		span      string
	}{
		"all of it":           {"", 0, -1, "bytes=10", ""},
		"all that a step has": {"press", 0, 10, "by=press&bytes=10", ""},
		"a part":              {"press", 2, 3, "by=press&bytes=10", "bytes=2-4"},
		"the end":             {"", 7, -1, "bytes=10", "bytes=7-9"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := refTo(text)
			ref.By = c.by
			n := c.n
			if n < 0 {
				n = int64(len(text)) - c.offset
			}
			p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
				holds(t, r)
				if r.URL.RawQuery != c.query || r.Header.Get("Range") != c.span || !strings.HasSuffix(r.URL.Path, "/payloads/"+ref.SHA256) || r.Method != http.MethodGet {
					t.Errorf("asked %s %s for %q, want %q and %q", r.Method, r.URL, r.Header.Get("Range"), c.query, c.span)
				}
				if c.span == "" {
					return sized(http.StatusOK, text)
				}
				answer, err := sized(http.StatusPartialContent, text[c.offset:c.offset+n])
				answer.Header = http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", c.offset, c.offset+n-1, len(text))}}
				return answer, err
			})
			r, err := p.Open(t.Context(), "j", ref, c.offset, c.n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil || string(got) != text[c.offset:c.offset+n] {
				t.Errorf("got %q, %v, want %q", got, err, text[c.offset:c.offset+n])
			}
		})
	}
}

// An answer that is no part of the payload is final, and one whose line breaks before its part begins is asked for
// again.
func TestAnAnswerThatIsNotThePartAskedFor(t *testing.T) {
	const text = "0123456789"
	for name, c := range map[string]struct {
		answer func() (*http.Response, error)
		tries  int
		want   error
	}{
		"another part": {func() (*http.Response, error) {
			answer, err := sized(http.StatusPartialContent, "012")
			answer.Header = http.Header{"Content-Range": {"bytes 0-2/10"}}
			return answer, err
		}, 1, payload.ErrAltered},
		"another length": {func() (*http.Response, error) {
			return sized(http.StatusOK, "0123")
		}, 1, payload.ErrAltered},
		"all, and its line breaks before the part": {func() (*http.Response, error) {
			answer, err := answers(http.StatusOK, "0123")
			answer.ContentLength = -1
			return answer, err
		}, maxTransfers, io.ErrUnexpectedEOF},
		"another status": {func() (*http.Response, error) { return sized(http.StatusAccepted, text) }, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				p := payloadsAt(t, func(*http.Request) (*http.Response, error) {
					tries++
					return c.answer()
				})
				r, err := p.Open(t.Context(), "j", refTo(text), 6, 2)
				if err == nil {
					_ = r.Close()
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || tries != c.tries {
					t.Errorf("got %v after %d tries, want %v after %d", err, tries, c.want, c.tries)
				}
			})
		})
	}
	p := payloadsAt(t, func(*http.Request) (*http.Response, error) {
		t.Error("a range that no payload has was asked for")
		return answers(http.StatusOK, "")
	})
	if _, err := p.Open(t.Context(), "j", refTo(text), 8, 3); err == nil || agent.Failure(err).Retryable {
		t.Errorf("got %v, want a final error", err)
	}
}

// An answer with all of a payload is read on from where the part begins.
func TestAnAnswerWithAllOfAPayloadIsReadFromThePart(t *testing.T) {
	const text = "0123456789"
	p := payloadsAt(t, func(*http.Request) (*http.Response, error) { return sized(http.StatusOK, text) })
	r, err := p.Open(t.Context(), "j", refTo(text), 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "67" {
		t.Errorf("got %q, %v, want 67", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
