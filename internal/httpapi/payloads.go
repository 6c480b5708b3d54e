package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

const (
	// payloadsPattern is where large payloads of a job are written, and payloadPattern where one is read: bytes, and no JSON.
	payloadsPattern = "/api/jobs/{id}/payloads"
	payloadPattern  = payloadsPattern + "/{sha256}"
	// payloadTimeout is how long one may be under way: 100 MB by a line of 100 KB a second.
	payloadTimeout = 20 * time.Minute
)

// Large is where large payloads are written and read: an engine in this process. Errors are those of payload.Store.
type Large interface {
	WritePayload(ctx context.Context, job, mediaType string, from io.Reader) (makegood.Payload, error)
	OpenPayload(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// PayloadPath is the path, below where the API is, under which a payload of a job is read.
func PayloadPath(job string, p makegood.Payload) string {
	query := url.Values{"bytes": {strconv.FormatInt(p.Bytes, 10)}}
	if p.By != "" {
		query.Set("by", p.By)
	}
	return "/api/jobs/" + url.PathEscape(job) + "/payloads/" + p.SHA256 + "?" + query.Encode()
}

// handlePayloads serves what is streamed, and so is no route.
func (a *api) handlePayloads(mux *http.ServeMux) {
	mux.HandleFunc("PUT "+payloadsPattern, slowly(a.writePayload))
	mux.HandleFunc("GET "+payloadPattern, slowly(a.readPayload))
}

// slowly gives a request the time that 100 MB take.
func slowly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), payloadTimeout)
		defer cancel()
		// A writer that knows no deadlines has none to move.
		control, end := http.NewResponseController(w), time.Now().Add(payloadTimeout)
		_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end)
		h(w, r.WithContext(ctx))
	}
}

// writePayload stores the body, for a job that is there or will be submitted, and answers with the reference.
func (a *api) writePayload(w http.ResponseWriter, r *http.Request) {
	p, err := a.storePayload(r)
	if err != nil {
		// What is left of the body is not read.
		w.Header().Set("Connection", "close")
		a.refuse(w, a.payloadProblem(r, err))
		return
	}
	write(w, http.StatusCreated, p)
}

func (a *api) storePayload(r *http.Request) (makegood.Payload, error) {
	id, err := jobID(r)
	if err != nil {
		return makegood.Payload{}, bad("the job's id: want %s", namePattern)
	}
	mediaType := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil && kind == "application/octet-stream" {
		mediaType = ""
	}
	if err := makegood.CheckPayloadType(mediaType); err != nil {
		return makegood.Payload{}, bad("the header Content-Type: %v", err)
	}
	if r.ContentLength > makegood.MaxLargePayloadBytes {
		return makegood.Payload{}, payload.ErrTooLarge
	}
	return a.Large.WritePayload(r.Context(), id, mediaType, r.Body)
}

// readPayload answers with the bytes of a payload. They are for a program or a file: no browser shows them as a page of this
// origin. What turns out to be altered on the way ends the connection before its time.
func (a *api) readPayload(w http.ResponseWriter, r *http.Request) {
	body, p, err := a.openPayload(r)
	if err != nil {
		a.refuse(w, a.payloadProblem(r, err))
		return
	}
	defer body.Close()
	for name, value := range map[string]string{
		"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition": fmt.Sprintf("attachment; filename=%q", r.PathValue("id")+"-"+p.SHA256[:12]),
		"Content-Length":      strconv.FormatInt(p.Bytes, 10), "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	if _, err := io.Copy(w, body); err != nil {
		a.Logger.WarnContext(r.Context(), "a payload could not be read to its end", "job", r.PathValue("id"), "error", err)
		panic(http.ErrAbortHandler)
	}
}

func (a *api) openPayload(r *http.Request) (io.ReadCloser, makegood.Payload, error) {
	id, err := jobID(r)
	if err != nil {
		return nil, makegood.Payload{}, err
	}
	values, err := query(r, "bytes", "by")
	if err != nil {
		return nil, makegood.Payload{}, err
	}
	n, err := strconv.ParseInt(values.Get("bytes"), 10, 64)
	if err != nil {
		return nil, makegood.Payload{}, bad("bytes is %.40q: want how many bytes the reference says", values.Get("bytes"))
	}
	p := makegood.Payload{SHA256: r.PathValue("sha256"), Bytes: n, By: values.Get("by")}
	if err := p.Check(); err != nil {
		return nil, p, bad("%v", err)
	}
	body, err := a.Large.OpenPayload(r.Context(), id, p, 0, -1)
	return body, p, err
}

// payloadProblem translates what a payload store says.
func (a *api) payloadProblem(r *http.Request, err error) *problem {
	switch {
	case errors.Is(err, payload.ErrTooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "%v", payload.ErrTooLarge)
	case errors.Is(err, payload.ErrNotFound):
		p := newProblem(http.StatusNotFound, "%v, for this job and by this writer", payload.ErrNotFound)
		p.body.Payload = r.PathValue("sha256")
		return p
	case errors.Is(err, payload.ErrAltered):
		a.Logger.WarnContext(r.Context(), "a payload is not what was written", "job", r.PathValue("id"), "error", err)
		return newProblem(http.StatusInternalServerError, "%v", payload.ErrAltered)
	}
	return a.problemOf(r, err)
}
