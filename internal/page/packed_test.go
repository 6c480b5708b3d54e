package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestATextIsPackedForWhoTakesThat(t *testing.T) {
	long := bytes.Repeat([]byte("<td>order</td>"), 1000)
	for accepts, packs := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.8": true, "gzip;q=0": false, "gzip; q=0.0": false, "deflate": false, "gzipped": false} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", accepts)
		writeText(w, r, http.StatusOK, long)
		body := io.Reader(w.Body)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packs {
			t.Errorf("Accept-Encoding %q: packed: %t, want %t", accepts, got, packs)
		}
		if packs {
			unpacked, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacked
		}
		if text, err := io.ReadAll(body); err != nil || !bytes.Equal(text, long) {
			t.Errorf("Accept-Encoding %q: got %d bytes, %v, want %d", accepts, len(text), err, len(long))
		}
	}
}

func TestAShortTextIsNotPacked(t *testing.T) {
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	r.Header.Set("Accept-Encoding", "gzip")
	writeText(w, r, http.StatusNotFound, []byte("nothing"))
	if w.Body.String() != "nothing" || w.Code != http.StatusNotFound {
		t.Errorf("got %d, %q", w.Code, w.Body)
	}
}
