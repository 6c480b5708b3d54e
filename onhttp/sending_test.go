package onhttp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/transfer"
)

// altered is another text each time that it is read from its beginning.
type altered struct {
	*strings.Reader
	times int
}

func (a *altered) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		a.times++
		a.Reader.Reset(strings.Repeat(string(rune('a'+a.times)), 4))
	}
	return a.Reader.Seek(offset, whence)
}

// A payload that has changed since it was measured is sent once: no other try sets that right.
func TestAPayloadThatChangesOnItsWayIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
			tries++
			_, _ = io.Copy(io.Discard, r.Body)
			return answers(http.StatusServiceUnavailable, "")
		})
		_, err := p.Write(t.Context(), payload.Place{Job: "j"}, &altered{Reader: strings.NewReader("aaaa")})
		if !errors.Is(err, transfer.ErrChanged) || tries != 1 {
			t.Errorf("got %v after %d tries, want %v after one", err, tries, transfer.ErrChanged)
		}
	})
}

// A payload that the engine has otherwise than it was sent is an error, and is not sent again.
func TestAPayloadThatIsStoredOtherwiseIsGivenUp(t *testing.T) {
	for name, from := range map[string]io.Reader{"what can be read again": strings.NewReader("text"), "what comes once": onlyRead{strings.NewReader("text")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored, err := json.Marshal(refTo("another text"))
				if err != nil {
					t.Fatal(err)
				}
				tries := 0
				p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
					tries++
					_, _ = io.Copy(io.Discard, r.Body)
					return answers(http.StatusCreated, string(stored))
				})
				if w, err := p.Write(t.Context(), payload.Place{Job: "j"}, from); err == nil || tries != 1 {
					t.Errorf("got %+v, %v after %d tries, want an error after one", w, err, tries)
				}
			})
		})
	}
}

// A payload that comes once and breaks off at its source is sent once.
func TestAPayloadThatBreaksOffAtItsSourceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, tries := errors.New("the disk is gone"), 0
		p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
			tries++
			_, err := io.Copy(io.Discard, r.Body)
			return nil, err
		})
		_, err := p.Write(t.Context(), payload.Place{Job: "j"}, onlyRead{io.MultiReader(strings.NewReader("text"), errorReader{broken})})
		if !errors.Is(err, broken) || tries != 1 {
			t.Errorf("got %v after %d tries, want %v after one", err, tries, broken)
		}
	})
}

// errorReader cannot be read.
type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
