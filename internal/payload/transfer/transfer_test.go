package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/transfer"
)

// Whoever gives up sending does not wait for a reader that gives nothing, and nothing more is read of it.
func TestWhoGivesUpDoesNotWaitForTheReader(t *testing.T) {
	r, w := io.Pipe()
	once := transfer.NewOnce(r)
	begun, read := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		_, err := once.Read(make([]byte, 1))
		read <- err
	}()
	<-begun
	if err := errors.Join(once.Close(), once.Failed()); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-read // It was under way, or comes too late.
	if _, err := once.Read(make([]byte, 1)); err == nil {
		t.Error("it reads on")
	}
	_ = w.Close()
}

// A reader that fails says so, and one that ends does not.
func TestWhyAReaderFailedIsKept(t *testing.T) {
	broken := errors.New("the disk is on fire")
	for _, want := range []error{broken, io.EOF} {
		r, w := io.Pipe()
		_ = w.CloseWithError(want)
		once := transfer.NewOnce(r)
		_, _ = io.Copy(io.Discard, once)
		if got := once.Failed(); errors.Is(want, io.EOF) != (got == nil) || got != nil && !errors.Is(got, broken) {
			t.Errorf("got %v of a reader that ends with %v", got, want)
		}
	}
}

// breaking gives a little, and breaks.
type breaking struct{ io.Reader }

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (breaking) Close() error { return nil }

// A download is given up after so many breaks in a row, and not for breaks between which something came.
func TestADownloadIsGivenUpWhereNothingComes(t *testing.T) {
	text := strings.Repeat("x", 100)
	p := makegood.Payload{Bytes: 100}
	for name, c := range map[string]struct {
		each int64
		says string
	}{"something comes": {each: 10}, "nothing comes": {says: "after 0 of 100 bytes: the line: unexpected EOF"}} {
		asked := 0
		r, err := transfer.Open(context.Background(), p, 0, 100, transfer.Asking{
			Ask: func(at, end int64) (io.ReadCloser, error) {
				asked++
				return breaking{strings.NewReader(text[at:min(end, at+c.each)])}, nil
			},
			Broken: func(err error) error {
				return errors.New(strings.Replace(err.Error(), "bytes:", "bytes: the line:", 1))
			},
			Tries: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		switch {
		case c.says == "" && (err != nil || string(got) != text || asked != 10):
			t.Errorf("%s: got %d bytes, %v, of %d requests", name, len(got), err, asked)
		case c.says != "" && (err == nil || err.Error() != c.says || asked != 3):
			t.Errorf("%s: got %v of %d requests", name, err, asked)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is another when it is sent than when it was measured is found.
func TestWhatChangesIsFound(t *testing.T) {
	source, again := transfer.Rewindable(bytes.NewReader([]byte("text")))
	if !again {
		t.Fatal("it can be read again")
	}
	w, err := source.Measure()
	if err != nil || w.Bytes != 4 {
		t.Fatalf("got %+v, %v", w, err)
	}
	for _, says := range []string{"", "it has changed"} {
		if says != "" {
			w.Bytes++
		}
		sending, err := source.Open(w)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, sending)
		if err := sending.Changed(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// What is on the way may name another part, or encode what it passes on: that is not what was asked for.
func TestAnAnswerIsTheOneThatWasAskedFor(t *testing.T) {
	p := makegood.Payload{Bytes: 10}
	for _, c := range []struct {
		status          int
		part, encoding  string
		length, at, end int64
		wrong           bool
	}{
		{200, "", "", 10, 0, 10, false},
		{200, "", "identity", -1, 0, 10, false},
		{200, "", "aws-chunked", 10, 0, 10, false},
		{200, "", "gzip", -1, 0, 10, true},
		{200, "", "", 9, 0, 10, true},
		{206, "bytes 2-4/10", "", 3, 2, 5, false},
		{206, "bytes 2-4/10", "br", 3, 2, 5, true},
		{206, "bytes 0-2/10", "", 3, 2, 5, true},
		{206, "bytes 2-4/11", "", 3, 2, 5, true},
		{206, "", "", 3, 2, 5, true},
		{206, "bytes 2-4/10", "", 4, 2, 5, true},
	} {
		answer := &http.Response{
			StatusCode: c.status, ContentLength: c.length, Body: io.NopCloser(strings.NewReader("0123456789")),
			Header: http.Header{"Content-Range": {c.part}, "Content-Encoding": {c.encoding}},
		}
		if _, err := transfer.Body(answer, p, c.at, c.end); errors.Is(err, payload.ErrAltered) != c.wrong || err != nil != c.wrong {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
