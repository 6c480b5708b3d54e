package services

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// straySeconds bounds how long a connection is kept that carries a stray answer.
const straySeconds = 2

// hang waits until the caller has gone or the shop closes.
func hang(r *http.Request) { <-r.Context().Done() }

// hangUp closes the connection without an answer. A handler that merely returned would send a 200.
func hangUp() { panic(http.ErrAbortHandler) }

// applyAfter makes the effect of a call after its caller has gone, a while later; never once the shop is closing,
// which ends hanging requests too.
func (s *Server) applyAfter(c call, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.open.Done():
	case <-timer.C:
	}
	if s.open.Err() == nil {
		s.books.apply(c)
	}
}

// answerTwice writes an answer and, behind it on the same kept-alive connection, a second one that the client did not
// ask for.
//
// A client that has put the connection to use again by then takes the stray answer for its own, and no client can
// tell. So the stray one is a 502, which makes no client believe in an effect that was not made.
func (s *Server) answerTwice(w http.ResponseWriter, a answer) {
	connection, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		respond(w, a)
		return
	}
	defer connection.Close()
	defer context.AfterFunc(s.open, func() { connection.Close() })()

	var both bytes.Buffer
	for _, one := range []answer{a, problem(http.StatusBadGateway, "stray answer")} {
		writeAnswer(&both, one)
	}
	if _, err := buffer.Write(both.Bytes()); err != nil || buffer.Flush() != nil {
		return
	}
	waitForEnd(connection)
}

func writeAnswer(to *bytes.Buffer, a answer) {
	response := http.Response{
		StatusCode: a.status, ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
	}
	if err := response.Write(to); err != nil {
		panic("services: write an answer to memory: " + err.Error())
	}
}

// waitForEnd returns when the other side closes the connection or sends more bytes, which are ignored.
func waitForEnd(connection net.Conn) {
	if connection.SetReadDeadline(time.Now().Add(straySeconds*time.Second)) == nil {
		_, _ = connection.Read(make([]byte, 1))
	}
}
