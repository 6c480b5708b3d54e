package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
)

// behind is an API that leads to a bucket, as a stack's does, and a client of it that has what nobody else should get.
type behind struct {
	*payloadtest.Bucket
	c *client.Client
	// logged is what the API has logged.
	logged *bytes.Buffer
	tmp    string
}

// keyed adds a key to every request, as the client of an API behind a gateway does, and follows whoever leads it on.
type keyed struct{ http.RoundTripper }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer the-key")
	r.Header.Set("X-Api-Key", "the-key")
	return k.RoundTripper.RoundTrip(r)
}

func newBehind(t *testing.T, options ...client.Option) *behind {
	t.Helper()
	b := &behind{Bucket: payloadtest.NewBucket(t), logged: &bytes.Buffer{}, tmp: t.TempDir()}
	t.Setenv("TMPDIR", b.tmp)
	api := httptest.NewServer(httpapi.New(httpapi.Config{Doors: b.Bucket, Logger: slog.New(slog.NewTextHandler(b.logged, nil))}))
	t.Cleanup(api.Close)
	b.c = newClient(t, api.URL, append([]client.Option{client.WithHTTPClient(&http.Client{Transport: keyed{http.DefaultTransport}})}, options...)...)
	return b
}

// check checks what must hold after anything: nobody brought a credential to the bucket, no file is left, and err is a secret's.
func (b *behind) check(t *testing.T, err error) {
	t.Helper()
	if found := b.Credentials(); len(found) > 0 {
		t.Errorf("the bucket was sent %v", found)
	}
	if left, globErr := filepath.Glob(filepath.Join(b.tmp, "*")); len(left) > 0 || globErr != nil {
		t.Errorf("left behind: %v, %v", left, globErr)
	}
	for what, text := range map[string]string{"the error": messageOf(err), "the log": b.logged.String()} {
		if strings.Contains(text, payloadtest.Signature) || hexes(text) {
			t.Errorf("%s has the signature: %s", what, text)
		}
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hexes reports whether a text has a signature in it; hashes of payloads are in none of those that are looked at.
func hexes(text string) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		if len(word) >= 64 {
			return true
		}
	}
	return false
}

// put writes a payload that must be written.
func (b *behind) put(t *testing.T, from io.Reader) makegood.Payload {
	t.Helper()
	p, err := b.c.WritePayload(api.As(t.Context(), "ada"), "j", "text/plain", from)
	if b.check(t, err); err != nil {
		t.Fatal(err)
	}
	return p
}

// get reads one that must be as it was written.
func (b *behind) get(t *testing.T, p makegood.Payload) []byte {
	t.Helper()
	text, err := b.read(t, p)
	if b.check(t, err); err != nil {
		t.Fatal(err)
	}
	return text
}

func (b *behind) read(t *testing.T, p makegood.Payload) ([]byte, error) {
	t.Helper()
	r, err := b.c.OpenPayload(api.As(t.Context(), "ada"), "j", p)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// only gives its bytes once.
type only struct{ io.Reader }

func some(n int) []byte { return bytes.Repeat([]byte("0123456789abcde\n"), n/16) }

// A payload goes past the API to a bucket and comes back from there, from whatever it is read; the same again is not sent again.
// No credential goes along, nothing is left behind, and no log and no error has the way in.
func TestAPayloadGoesThroughDoorsAndBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, some(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]func(*testing.T) (io.Reader, []byte){
		"nothing":              func(*testing.T) (io.Reader, []byte) { return only{strings.NewReader("")}, nil },
		"what can be reread":   func(*testing.T) (io.Reader, []byte) { return bytes.NewReader(some(3 << 20)), some(3 << 20) },
		"what comes once":      func(*testing.T) (io.Reader, []byte) { return only{bytes.NewReader(some(3 << 20))}, some(3 << 20) },
		"little that does":     func(*testing.T) (io.Reader, []byte) { return only{strings.NewReader("x")}, []byte("x") },
		"a file from a middle": func(t *testing.T) (io.Reader, []byte) { return opened(t, file, 1<<20), some(3 << 20)[1<<20:] },
		"a pipe": func(t *testing.T) (io.Reader, []byte) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			go func() { _, _ = w.Write(some(2 << 20)); _ = w.Close() }()
			return r, some(2 << 20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBehind(t)
			reader, text := from(t)
			p := b.put(t, reader)
			hash := sha256.Sum256(text)
			if want := (makegood.Payload{SHA256: hex.EncodeToString(hash[:]), Bytes: int64(len(text)), Type: "text/plain"}); p != want {
				t.Errorf("got %+v, want %+v", p, want)
			}
			if got := b.get(t, p); !bytes.Equal(got, text) {
				t.Errorf("got %d bytes, want %d, the same", len(got), len(text))
			}
			if again := b.put(t, bytes.NewReader(text)); again != p {
				t.Errorf("again: got %+v, want %+v", again, p)
			}
			if asked := b.Asked(); !slices.Equal(asked, []string{"PUT", "GET"}) {
				t.Errorf("the bucket was asked %v", asked)
			}
		})
	}
}

// opened is a file from a place on.
func opened(t *testing.T, file string, from int64) *os.File {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

// A part of a payload is asked for as a part; one that it has not is refused unasked.
func TestAPartOfAPayloadIsReadThroughADoor(t *testing.T) {
	b := newBehind(t)
	p := b.put(t, bytes.NewReader(some(1<<10)))
	for _, c := range []struct{ offset, n, want int64 }{{0, 16, 16}, {1000, -1, 24}, {5, 0, 0}, {1024, -1, 0}, {0, -1, 1024}} {
		r, err := b.c.OpenPayloadRange(t.Context(), "j", p, c.offset, c.n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, some(1 << 10)[c.offset:c.offset+c.want]) {
			t.Errorf("%d bytes from %d on: got %q, %v", c.n, c.offset, got, err)
		}
	}
	var invalid *api.InvalidError
	if _, err := b.c.OpenPayloadRange(t.Context(), "j", p, 1000, 25); !errors.As(err, &invalid) {
		t.Errorf("more than there is: got %v", err)
	}
	b.check(t, nil)
}

// breaksOff takes a part of a body, or gives a part of an answer, and hangs up.
func breaksOff(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		_, _ = io.CopyN(io.Discard, r.Body, 64<<10)
	} else {
		w.Header().Set("Content-Length", "3145728")
		_, _ = w.Write(some(1 << 20))
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// An upload that breaks off is made again, and a download goes on where it broke off; each through a door of its own. So it is
// where the store has trouble, or finds the door closed.
func TestWhatBreaksOffGoesOn(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"broken off": breaksOff, "unavailable": answers(http.StatusServiceUnavailable), "too slow": answers(http.StatusTooManyRequests),
		"closed": answers(http.StatusForbidden), "there already": answers(http.StatusPreconditionFailed),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBehind(t)
			b.First(first, first)
			p := b.put(t, only{bytes.NewReader(some(3 << 20))})
			b.First(first)
			if got := b.get(t, p); !bytes.Equal(got, some(3<<20)) {
				t.Errorf("got %d bytes, want 3 MB, the same", len(got))
			}
			read := "GET"
			if name == "broken off" {
				read = "GET bytes=1048576-3145727"
			}
			if asked := b.Asked(); !slices.Equal(asked, []string{"PUT", "PUT", "PUT", "GET", read}) {
				t.Errorf("the bucket was asked %v", asked)
			}
		})
	}
}

// What stays broken is given up, after so many tries, and says who did not answer; whoever wants one try gets one.
func TestWhatStaysBrokenIsGivenUp(t *testing.T) {
	for tries, options := range map[int][]client.Option{4: nil, 1: {client.WithPatience(0)}} {
		b := newBehind(t, options...)
		p := b.put(t, strings.NewReader("x"))
		b.Late(time.Hour)
		_, err := b.read(t, p)
		_, writeErr := b.c.WritePayload(t.Context(), "j", "", only{strings.NewReader("other")})
		for _, err := range []error{err, writeErr} {
			var unreachable *api.UnreachableError
			if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "the payload store at 127.0.0.1:") || !strings.Contains(err.Error(), "answered 403 (AccessDenied)") {
				t.Errorf("got %v, want who refused", err)
			}
			b.check(t, err)
		}
		if asked := len(b.Asked()); asked != 1+2*tries {
			t.Errorf("the bucket was asked %d times, want %d", asked, 1+2*tries)
		}
		b.Close()
		_, err = b.read(t, p)
		if err == nil || !strings.Contains(err.Error(), "the payload store at") {
			t.Errorf("nobody listens: got %v", err)
		}
		b.check(t, err)
	}
}

// turning is a file that is another one each time that it is read.
type turning struct {
	*bytes.Reader
	turns int
	next  []byte
}

func (f *turning) Seek(offset int64, whence int) (int64, error) {
	if f.turns++; f.turns == 3 { // where it stands, to hash it, to send it
		f.Reset(f.next)
	}
	return f.Reader.Seek(offset, whence)
}

// What changes between hashing and sending is not stored, and whoever wrote it is told why.
func TestWhatChangesWhileItIsWrittenIsRefused(t *testing.T) {
	for name, next := range map[string][]byte{"other": some(2 << 20)[1:], "shorter": some(1 << 20)} {
		b := newBehind(t)
		text := some(2 << 20)[:2<<20-1]
		var invalid *api.InvalidError
		_, err := b.c.WritePayload(t.Context(), "j", "", &turning{Reader: bytes.NewReader(text), next: next})
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "it has changed while it was written") {
			t.Errorf("%s: got %v, want that it has changed", name, err)
		}
		b.check(t, err)
	}
}

// nulls is a file without an end.
type nulls struct{}

func (nulls) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Too much is refused as soon as that is known, and nothing of it is sent or left.
func TestTooMuchIsNotSent(t *testing.T) {
	b := newBehind(t)
	var invalid *api.InvalidError
	_, err := b.c.WritePayload(t.Context(), "j", "", nulls{})
	if !errors.As(err, &invalid) || invalid.Status != http.StatusRequestEntityTooLarge || !strings.Contains(err.Error(), "104857600 bytes") {
		t.Errorf("got %v, want that there is too much", err)
	}
	if asked := b.Asked(); len(asked) > 0 {
		t.Errorf("the bucket was asked %v", asked)
	}
	b.check(t, err)
}

var errDisk = errors.New("the disk is on fire")

// A reader that fails says so itself.
func TestAReaderThatFailsSaysSo(t *testing.T) {
	b := newBehind(t)
	for _, head := range [][]byte{nil, some(2 << 20)} {
		_, err := b.c.WritePayload(t.Context(), "j", "", io.MultiReader(bytes.NewReader(head), brokenReader{}))
		if !errors.Is(err, errDisk) {
			t.Errorf("after %d bytes: got %v, want %v", len(head), err, errDisk)
		}
		b.check(t, err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errDisk }

// What is not there, or is another thing than the reference says, is never given for it.
func TestWhatIsGoneOrAlteredIsAnError(t *testing.T) {
	b := newBehind(t)
	p := b.put(t, bytes.NewReader(some(1<<20)))
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"other": {append([]byte("X"), some(1 << 20)[1:]...), payload.ErrAltered}, "shorter": {some(1<<20 - 16), payload.ErrAltered},
		"longer": {some(1<<20 + 16), payload.ErrAltered}, "gone": {nil, api.ErrNoPayload},
	} {
		b.Change("j", p, c.body)
		_, err := b.read(t, p)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		b.check(t, err)
	}
	// It goes between the door and the way through it.
	b.Change("j", p, some(1<<20))
	b.First(answers(http.StatusNotFound))
	if _, err := b.read(t, p); !errors.Is(err, api.ErrNoPayload) {
		t.Errorf("gone meanwhile: got %v, want %v", err, api.ErrNoPayload)
	}
}

// Whoever gives up is not kept waiting, and hears why.
func TestWhoeverGivesUpIsNotKept(t *testing.T) {
	b := newBehind(t)
	p := b.put(t, strings.NewReader("x"))
	why := errors.New("no time left")
	ctx, cancel := context.WithCancelCause(t.Context())
	var once sync.Once
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { cancel(why) })
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	b.First(hangs, hangs)
	if _, err := b.c.WritePayload(ctx, "j", "", strings.NewReader("y")); !errors.Is(err, why) {
		t.Errorf("write: got %v, want %v", err, why)
	}
	if _, err := b.c.OpenPayload(ctx, "j", p); !errors.Is(err, why) {
		t.Errorf("read: got %v, want %v", err, why)
	}
}

// Where there is no payload store, whoever writes hears what makes one.
func TestAStackWithoutAPayloadStoreSaysWhatMakesOne(t *testing.T) {
	server := httptest.NewServer(httpapi.New(httpapi.Config{Logger: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL)
	_, readErr := c.OpenPayload(t.Context(), "j", makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 1})
	_, writeErr := c.WritePayload(t.Context(), "j", "", only{strings.NewReader("x")})
	for _, err := range []error{readErr, writeErr} {
		var invalid *api.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "the parameter "+httpapi.PayloadParameter) {
			t.Errorf("got %v, want the parameter", err)
		}
	}
}

// Bytes go by https, or to this machine; who leads elsewhere is not followed, nor is one who leads there without saying what.
func TestNobodyIsFollowedWhereOthersCouldRead(t *testing.T) {
	door := func(status int, url string) answer {
		return answer{status: status, body: `{"method":"GET","url":"` + url + `"}`}
	}
	p := makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 1}
	for _, url := range []string{"http://example.com/x?secret=1", "ftp://127.0.0.1/?secret=1", "https://a:b@127.0.0.1/?secret=1", "//?secret=1", "%zz?secret=1"} {
		c := newClient(t, serve(t, door(http.StatusSeeOther, url)).URL)
		if _, err := c.OpenPayload(t.Context(), "j", p); err == nil || !strings.Contains(err.Error(), "leads to a payload store") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for _, a := range []answer{{status: http.StatusSeeOther, header: "Location: http://127.0.0.1:1/"}, {status: http.StatusMovedPermanently, header: "Location: http://127.0.0.1:1/"}} {
		c := newClient(t, serve(t, a).URL)
		var unreachable *api.UnreachableError
		if _, err := c.OpenPayload(t.Context(), "j", p); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "perhaps not a Makegood") {
			t.Errorf("%+v: got %v", a, err)
		}
	}
}
