package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// packedFrom is the size of the smallest text that is compressed, in bytes: a smaller one fits in one packet anyway.
const packedFrom = 1400

// writeText answers with a text, compressed if the browser takes that. Streams must not use it: compression buffers.
func writeText(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(text) >= packedFrom && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		text = packed(text)
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // A browser that has gone asks again.
}

// takesGzip reports whether a browser says that it takes gzip.
func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// packed is a text as gzip has it, at its quickest: a view is written for one browser.
func packed(text []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic("page: " + err.Error()) // There is such a level.
	}
	_, _ = z.Write(text) // A buffer takes everything.
	_ = z.Close()
	return b.Bytes()
}
