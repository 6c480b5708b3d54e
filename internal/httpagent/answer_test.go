package httpagent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

func TestTheStatusSaysWhatFollows(t *testing.T) {
	want := map[int]string{
		200: "success", 201: "success", 202: "success", 204: "success", 299: "success",
		301: "final unknown", 302: "final unknown", 303: "final unknown", 304: "final unknown", 307: "final unknown", 308: "final unknown",
		400: "final no", 401: "final no", 403: "final no", 404: "final no", 405: "final no", 409: "final no", 410: "final no", 422: "final no", 499: "final no",
		408: "retryable unknown", 425: "retryable unknown", 429: "retryable unknown",
		500: "retryable unknown", 501: "retryable unknown", 502: "retryable unknown", 503: "retryable unknown", 504: "retryable unknown", 599: "retryable unknown",
		600: "final unknown", 999: "final unknown",
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Location", "/200")
		w.WriteHeader(status)
	})
	a := newAgent(t)
	for status, want := range want {
		with := fields{"url": fmt.Sprintf("%s/%d?secret=1", url, status)}
		_, err := call(t, a, taskOf(t, with))
		wantKind(t, err, want)
		if err != nil && (!strings.HasPrefix(err.Error(), fmt.Sprintf("POST %s: %d", url, status)) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%d: got %q, want the request without path and query, and the status", status, err)
		}
		if status == 404 || status == 410 {
			want = "success"
		}
		output, err := call(t, a, undoOf(t, with, makegood.OutcomeDone))
		wantKind(t, err, want)
		if output != "" {
			t.Errorf("undo, %d: got output %q, want null", status, output)
		}
	}
}

// A server may say 101 to a request that asked for nothing of the kind.
func TestSwitchingProtocolsIsNoAnswer(t *testing.T) {
	address := listen(t, func(c net.Conn) {
		if readRequest(bufio.NewReader(c)) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		}
	})
	_, err := call(t, newAgent(t), taskOf(t, fields{"url": "http://" + address}))
	wantKind(t, err, "final unknown")
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var followed counter
	elsewhere := serve(t, followed.handler(http.StatusOK))
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, status) })
		_, err := call(t, newAgent(t), taskOf(t, fields{"url": url, "method": "GET"}))
		wantKind(t, err, "final unknown")
	}
	if got := followed.Load(); got != 0 {
		t.Errorf("got %d requests elsewhere, want none", got)
	}
}

func TestTheBodyOfASuccessIsTheOutput(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"m-1"}`: `{"id":"m-1"}`,
		`[1, 2]`:       `[1, 2]`,
		`"text"`:       `"text"`,
		`null`:         `null`,
		"":             "",
		" \r\n ":       "",
		"OK":           `"OK"`,
		"<a>\x00":      `"\u003ca\u003e\u0000"`,
		`{"a":`:        `"{\"a\":"`,
		"\"\xff\"":     `"\"` + "\uFFFD" + `\""`,
		`{} {}`:        `"{} {}"`,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		got, err := call(t, newAgent(t), taskOf(t, fields{"url": url}))
		if got != want || err != nil {
			t.Errorf("body %q: got %q, %v, want %q", body, got, err, want)
		}
	}
}

// The effect has happened, and the next attempt would get the same.
func TestAnAnswerThatIsTooLargeIsFinal(t *testing.T) {
	for size, want := range map[int]string{
		makegood.MaxPayloadBytes:     "success",
		makegood.MaxPayloadBytes + 1: "final unknown",
		64 << 20:                     "final unknown",
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			line := []byte(strings.Repeat(" ", 1<<16))
			_, _ = io.WriteString(w, "1")
			for left := size - 1; left > 0; left -= len(line) {
				if _, err := w.Write(line[:min(left, len(line))]); err != nil {
					return
				}
			}
		})
		_, err := call(t, newAgent(t), taskOf(t, fields{"url": url}))
		wantKind(t, err, want)
	}
}

func TestAnErrorQuotesTheBeginningOfItsBody(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, ` {"why":"sold out"} `+strings.Repeat("x", 1<<20))
	})
	_, err := call(t, newAgent(t), taskOf(t, fields{"url": url}))
	if want := `409 Conflict: {"why":"sold out"}`; err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
		t.Errorf("got %v, want %s and no more than a few hundred bytes", err, want)
	}
}

// A path or a query may be the key to a service, and what an agent says is kept in the job, and announced.
func TestAnErrorNamesSchemeAndHostOfItsAddressAndNothingElse(t *testing.T) {
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/secret/301" {
			http.Redirect(w, r, "/secret/200", http.StatusMovedPermanently)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, "Cannot POST %s, %s, %s, %s", r.RequestURI, r.URL.Path, r.URL.RawQuery, html.EscapeString(r.RequestURI))
	})
	for address, want := range map[string]string{
		echo + "/secret/%73ecret a?key=secret&b=secret": "POST " + echo + ": 404 Not Found: Cannot POST [not shown]",
		echo + "/secret/301":                            "POST " + echo + ": 301 Moved Permanently",
		"http://127.0.0.1:1/secret?key=secret":          "POST http://127.0.0.1:1: ",
		"http://user:secret/secret@127.0.0.1/":          "url: it cannot be read",
		"http://127.0.0.1/%secret":                      "url: it cannot be read",
		"http://secret:secret@127.0.0.1/":               "url: holds a user",
	} {
		_, err := call(t, newAgent(t), taskOf(t, fields{"url": address}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q and without what may be a secret", address, err, want)
		}
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"-7":                            0,
		"1.5":                           0,
		"soon":                          0,
		"99999999999":                   limits.MaxBackoff,
		"4000000000":                    limits.MaxBackoff,
		"Fri, 20 Nov 2026 09:00:42 GMT": 42 * time.Second,
		"Fri, 20 Nov 2026 08:00:00 GMT": 0,
		"Fri, 20 Nov 2399 08:00:00 GMT": limits.MaxBackoff,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, err := call(t, newAgent(t), taskOf(t, fields{"url": url}))
	if err == nil || agent.Failure(err).RetryAfter != 7*makegood.Second || !agent.Failure(err).SlowDown {
		t.Errorf("got %v, want a failure that asks for 7s", err)
	}
}

// What a remote does to a connection, and what is then known.
func TestABrokenConnectionIsRetryable(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   string
	}{
		"no answer":            {"", "retryable unknown"},
		"half a header":        {"HTTP/1.1 200 OK\r\nContent-Le", "retryable unknown"},
		"half a body":          {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"", "retryable unknown"},
		"half a chunk":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a", "retryable unknown"},
		"no HTTP":              {"220 mail.example ESMTP\r\n", "retryable unknown"},
		"a header too large":   {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxResponseHeaderBytes+5000) + "\r\n\r\n", "retryable unknown"},
		"half an error's body": {"HTTP/1.1 400 Bad Request\r\nContent-Length: 10\r\n\r\nno", "final no"},
	} {
		t.Run(name, func(t *testing.T) {
			address := listen(t, func(c1 net.Conn) {
				if readRequest(bufio.NewReader(c1)) {
					_, _ = io.WriteString(c1, c.answer)
				}
			})
			_, err := call(t, newAgent(t), taskOf(t, fields{"url": "http://" + address, "body": 1}))
			wantKind(t, err, c.want)
		})
	}
}

// WRK-4: the remote accepts and says nothing, stops within the header, or drips its body. The
// attempt ends with its context.
func TestAHungRemoteEndsWithTheContext(t *testing.T) {
	for name, c := range map[string]struct {
		answer, drip string
		// after is how many drips there are before the time is up.
		after int
		want  string
	}{
		"silent":                {"", "", 1, "retryable unknown"},
		"header drips":          {"HTTP/1.1 200 OK\r\nX: ", "x", 10, "retryable unknown"},
		"body hangs":            {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", "", 10, "retryable unknown"},
		"body drips":            {"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "x", 10, "retryable unknown"},
		"an error's body drips": {"HTTP/1.1 422 Unprocessable\r\nContent-Length: 100000\r\n\r\n", "x", 200, "final no"},
	} {
		t.Run(name, func(t *testing.T) {
			gone, heard := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { close(heard) }})
			address := listen(t, func(conn net.Conn) {
				if !readRequest(bufio.NewReader(conn)) {
					return
				}
				_, _ = io.WriteString(conn, c.answer)
				if c.answer != "" {
					<-heard // The agent may be slow to read what was written.
				}
				for drips := 1; ; drips++ {
					if drips == c.after {
						cancel(context.DeadlineExceeded)
					}
					if _, err := io.WriteString(conn, c.drip); err != nil {
						break
					}
					// The agent's end of the connection is closed when it has given up.
					_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
					if _, err := conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
						break
					}
				}
				close(gone)
			})
			_, err := newAgent(t).Handle(ctx, taskOf(t, fields{"url": "http://" + address}))
			wantKind(t, err, c.want)
			<-gone
		})
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Nothing can have been sent, so nothing was applied: refused, a name that leads nowhere, no TLS, and
// out of time before there was a connection.
func TestWithoutAConnectionNothingWasApplied(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	plain := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	patient, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		url string
	}{
		"refused":              {t.Context(), "http://" + closed},
		"no such name":         {patient, "http://makegood.invalid"},
		"no TLS":               {t.Context(), "https://" + plain},
		"an unknown authority": {t.Context(), secure.URL},
		"out of time":          {ended, "http://" + plain},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newAgent(t).Handle(c.ctx, taskOf(t, fields{"url": c.url, "body": 1}))
			wantKind(t, err, "retryable no")
		})
	}
}

// A dial does not go on after its request.
func TestADialEndsWithItsRequest(t *testing.T) {
	a := newAgent(t)
	request, cancel := context.WithCancel(t.Context())
	cancel()
	address := listen(t, func(net.Conn) {})
	conn, err := a.dial(context.WithValue(t.Context(), requestKey{}, request), "tcp", address)
	if err == nil {
		_ = conn.Close()
		t.Error("got a connection, want none")
	}
}

// Over HTTP/2 too an attempt is one request, and an answer is read the same way.
func TestItSpeaksHTTP2(t *testing.T) {
	var requests counter
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1); r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprintf(w, "%q", r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	a := newAgent(t)
	a.transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	defer a.Close()
	got, err := call(t, a, taskOf(t, fields{"url": server.URL, "method": "GET"}))
	if got != `"HTTP/2.0"` || err != nil {
		t.Errorf("got %s, %v, want HTTP/2.0", got, err)
	}
	_, err = call(t, a, taskOf(t, fields{"url": server.URL + "/broken", "method": "GET"}))
	wantKind(t, err, "retryable unknown")
	if requests.Load() != 2 {
		t.Errorf("got %d requests, want 2", requests.Load())
	}
}
