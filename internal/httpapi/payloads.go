package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

const (
	// payloadsPattern is where large payloads of a job are written, and payloadPattern where one is read.
	payloadsPattern = "/api/jobs/{id}/payloads"
	payloadPattern  = payloadsPattern + "/{sha256}"
	// payloadTimeout is how long one may be under way: 100 MB by a line of 100 KB a second.
	payloadTimeout = 20 * time.Minute
)

// PayloadParameter is the parameter of a stack's template that gives it a payload store.
const PayloadParameter = "PayloadBucket"

// Upload is the body that asks where a payload is written. An API that takes the bytes itself needs neither hash nor
// length.
type Upload struct {
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Type   string `json:"type,omitempty"`
}

// PayloadDoor is one request that its holder may make, for a while: a payload.Door. It needs no credential, so the URL
// is a secret.
type PayloadDoor struct {
	// Method is empty where no request is needed: the bytes are there.
	Method string `json:"method"`
	// URL is where to; empty: the very URL that was asked.
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Ends    time.Time         `json:"ends,omitzero"`
	// Payload is the reference. An API that takes the bytes itself says it when it has them.
	Payload *makegood.Payload `json:"payload,omitempty"`
}

// payloadBytes stands for bytes of any type in the table of routes.
type payloadBytes struct{}

// payloadRoutes are the routes for values too large for an input or an output.
func payloadRoutes() []route {
	refused := func(answers map[int]any, statuses ...int) map[int]any {
		return refusing(answers, append(statuses, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError)...)
	}
	return []route{
		{
			method: "POST", path: payloadsPattern, name: "payloadDoor", door: Submit, handle: taking((*handlers).writeDoor), body: Upload{},
			summary: "Ask where a payload of a job is written that is there or will be submitted. The answer is a request to make, without credentials: where url is empty, to this very URL; where method is empty no request is needed, since the bytes are there. The URL is a secret, and lasts a while. On a stack sha256 and bytes must be said (411), and no other bytes are taken there.",
			answers: refused(map[int]any{http.StatusOK: PayloadDoor{}}, http.StatusLengthRequired, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType),
		},
		{
			method: "PUT", path: payloadsPattern, name: "writePayload", door: Submit, stream: (*handlers).writePayload, body: payloadBytes{}, limit: makegood.MaxLargePayloadBytes,
			summary: fmt.Sprintf("Write a payload of a job that is there or will be submitted: at most %d bytes of what Content-Type says. It is stored when this is answered, with its reference. A stack takes no bytes here (405).", makegood.MaxLargePayloadBytes),
			answers: refused(map[int]any{http.StatusCreated: makegood.Payload{}}, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests),
		},
		{
			method: "GET", path: payloadPattern, name: "readPayload", door: Read, stream: (*handlers).readPayload,
			summary:    "Read a payload of a job, or with the header Range: bytes=FIRST-LAST a part. A stack answers with a request to make, without credentials, and leads there (303); its URL is a secret, and lasts a while.",
			parameters: referenceParameters(),
			answers:    refused(map[int]any{http.StatusOK: payloadBytes{}, http.StatusPartialContent: payloadBytes{}, http.StatusSeeOther: PayloadDoor{}}, http.StatusRequestedRangeNotSatisfiable),
		},
	}
}

// slowly serves a request with the time that 100 MB take.
func slowly(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	ctx, cancel := context.WithTimeout(r.Context(), payloadTimeout)
	defer cancel()
	// A writer that knows no deadlines has none to move.
	control, end := http.NewResponseController(w), time.Now().Add(payloadTimeout)
	_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end)
	serve(w, r.WithContext(ctx))
}

// noPayloads is the error where there is no payload store.
func noPayloads() *problem {
	return newProblem(http.StatusNotFound, "there is no payload store here, and an input or an output has at most %d bytes; the parameter %s of a stack's template makes one", makegood.MaxPayloadBytes, PayloadParameter)
}

// writeDoor says where a payload is written.
func (a *handlers) writeDoor(r *http.Request, u Upload) (answer, error) {
	id, err := jobID(r)
	if err != nil {
		return answer{}, err
	}
	if u.Type, err = typeOf(u.Type); err != nil {
		return answer{}, bad("type: %v", err)
	}
	switch {
	case a.Doors == nil && !a.Jobs.KeepsPayloads():
		return answer{}, noPayloads()
	case a.Doors == nil:
		return ok(PayloadDoor{Method: http.MethodPut, Headers: map[string]string{"Content-Type": cmp.Or(u.Type, anyType)}})
	case u.SHA256 == "":
		return answer{}, newProblem(http.StatusLengthRequired, "sha256 is missing: the hash of the bytes, and how many they are, must be known before they are written here")
	case u.Bytes > makegood.MaxLargePayloadBytes:
		return answer{}, a.payloadProblem(r, payload.ErrTooLarge)
	}
	p := makegood.Payload{SHA256: u.SHA256, Bytes: u.Bytes, Type: u.Type}
	if err := p.Check(); err != nil {
		return answer{}, bad("%v", err)
	}
	door, err := a.Doors.WriteDoor(r.Context(), payload.Place{Job: id}, payload.Written{SHA256: u.SHA256, Bytes: u.Bytes})
	if err != nil {
		return answer{}, a.payloadProblem(r, err)
	}
	said := doorOf(door)
	said.Payload = &p
	return ok(said)
}

// doorOf is the JSON form of a door.
func doorOf(d payload.Door) PayloadDoor {
	said := PayloadDoor{Method: d.Method, URL: d.URL, Headers: map[string]string{}, Ends: d.Ends.UTC()}
	for name, values := range d.Header {
		// The HTTP client sets Host from the URL.
		if len(values) > 0 && !strings.EqualFold(name, "Host") {
			said.Headers[name] = values[0]
		}
	}
	return said
}

// anyType is the type of bytes without a declared type.
const anyType = "application/octet-stream"

// typeOf returns the media type of a payload, as its reference has it.
func typeOf(mediaType string) (string, error) {
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil && kind == anyType {
		mediaType = ""
	}
	return mediaType, limits.CheckPayloadType(mediaType)
}

// writePayload stores the body, for a job that is there or will be submitted, and answers with the reference.
func (a *handlers) writePayload(w http.ResponseWriter, r *http.Request) {
	p, err := a.storePayload(r)
	if err != nil {
		a.refuseBody(w, a.payloadProblem(r, err))
		return
	}
	write(w, http.StatusCreated, p)
}

// refuseBody refuses a request and leaves the rest of its body unread.
func (a *handlers) refuseBody(w http.ResponseWriter, p *problem) {
	w.Header().Set("Connection", "close")
	a.refuse(w, p)
}

func (a *handlers) storePayload(r *http.Request) (makegood.Payload, error) {
	switch {
	case a.Doors != nil:
		return makegood.Payload{}, newProblem(http.StatusMethodNotAllowed, "no bytes are taken here: POST their sha256, bytes and type to this very path, and the answer says where they are written")
	case !a.Jobs.KeepsPayloads():
		return makegood.Payload{}, noPayloads()
	}
	id, err := jobID(r)
	if err != nil {
		return makegood.Payload{}, err
	}
	mediaType, err := announcedType(r)
	if err != nil {
		return makegood.Payload{}, err
	}
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	default:
		return makegood.Payload{}, tooManyUploads("submitters")
	}
	return a.Jobs.WritePayload(r.Context(), id, mediaType, sent{r.Body})
}

func tooManyUploads(of string) *problem {
	return newProblem(http.StatusTooManyRequests, "%d payloads of %s are being written already, the limit is %d", limits.MaxUploads, of, limits.MaxUploads)
}

// errBrokeOff: a body did not come to its end. That is no trouble of the store's.
var errBrokeOff = errors.New("the body broke off, and the payload is not stored")

// sent is the body of a request.
type sent struct{ io.Reader }

// Read reads on. Its errors are those of the sender, or of the line.
func (s sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errBrokeOff, err)
	}
	return n, err
}

// announcedType returns the type of a body that is a payload. One with a Content-Length over the limit is refused
// unread.
func announcedType(r *http.Request) (string, error) {
	mediaType, err := typeOf(r.Header.Get("Content-Type"))
	if err != nil {
		return "", bad("the header Content-Type: %v", err)
	}
	if r.ContentLength > makegood.MaxLargePayloadBytes {
		return "", payload.ErrTooLarge
	}
	return mediaType, nil
}

// readPayload answers with the bytes of a payload, or leads to where they are.
func (a *handlers) readPayload(w http.ResponseWriter, r *http.Request) {
	id, p, err := a.meant(r)
	switch {
	case err != nil:
		a.refuse(w, a.payloadProblem(r, err))
	case a.Doors != nil:
		a.leadToPayload(w, r, id, p)
	default:
		a.sendPayload(w, r, sending{
			job: id, payload: p, problem: a.payloadProblem,
			open: func(offset, n int64) (io.ReadCloser, error) {
				return a.Jobs.OpenPayloadRange(r.Context(), id, p, offset, n)
			},
		})
	}
}

// meant reads which payload a request means.
func (a *handlers) meant(r *http.Request) (id string, p makegood.Payload, err error) {
	if a.Doors == nil && !a.Jobs.KeepsPayloads() {
		return "", p, noPayloads()
	}
	if id, err = jobID(r); err != nil {
		return "", p, err
	}
	p, err = referenceOf(r)
	return id, p, err
}

// referenceOf reads the reference in the path and the query of a request.
func referenceOf(r *http.Request) (p makegood.Payload, err error) {
	values, err := query(r, "bytes", "by")
	if err != nil {
		return p, err
	}
	n, err := strconv.ParseInt(values.Get("bytes"), 10, 64)
	if err != nil {
		return p, bad("bytes is %.40q: want how many bytes the reference says", values.Get("bytes"))
	}
	p = makegood.Payload{SHA256: r.PathValue("sha256"), Bytes: n, By: values.Get("by")}
	if err := p.Check(); err != nil {
		return p, bad("%v", err)
	}
	return p, nil
}

// referenceParameters are the query parameters that referenceOf reads.
func referenceParameters() []parameter {
	return []parameter{
		{name: "bytes", says: "how many bytes its reference says"},
		{name: "by", says: "the agent that wrote it, as its reference says; left out: the submitter of the job wrote it"},
	}
}

// leadToPayload leads to where a payload is: a program reads the door, and all others follow it.
func (a *handlers) leadToPayload(w http.ResponseWriter, r *http.Request, id string, p makegood.Payload) {
	ctx, cancel := context.WithTimeout(r.Context(), handleTimeout)
	defer cancel()
	door, err := a.Doors.ReadDoor(ctx, id, p)
	if err != nil {
		a.refuse(w, a.payloadProblem(r, err))
		return
	}
	said := doorOf(door)
	// A redirected client sends no header of ours, so this works only for a door without headers.
	if len(said.Headers) == 0 {
		w.Header().Set("Location", door.URL)
	}
	// The URL is a secret: caches must not keep it, and its target must not learn where it was found.
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	write(w, http.StatusSeeOther, said)
}

// sending is a payload on its way out.
type sending struct {
	job     string
	payload makegood.Payload
	// open opens n bytes at offset; a negative n: all. problem translates its errors.
	open    func(offset, n int64) (io.ReadCloser, error)
	problem func(*http.Request, error) *problem
}

// sendPayload answers with the bytes, or the requested part. They are for a program or a file: no browser shows them as
// a page of this origin. If the bytes turn out to be altered, the connection ends early; a client that reads on from
// there is told why.
func (a *handlers) sendPayload(w http.ResponseWriter, r *http.Request, s sending) {
	offset, n, err := partOf(r.Header.Get("Range"), s.payload.Bytes)
	if err != nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", s.payload.Bytes))
		a.refuse(w, s.problem(r, err))
		return
	}
	body, err := s.open(offset, n)
	if err != nil {
		a.refuse(w, s.problem(r, err))
		return
	}
	defer body.Close()
	// Whether it can be read at all is known before anything is answered.
	begun := bufio.NewReader(body)
	if _, err := begun.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		a.refuse(w, s.problem(r, err))
		return
	}
	s.answer(w, offset, n)
	if _, err := io.Copy(w, begun); err != nil {
		a.Logger.WarnContext(r.Context(), "a payload could not be read to its end", "job", s.job, "error", err)
		// Flush the bytes read so far, so that a client can resume where reading failed.
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// answer writes the header of an answer with n bytes at offset; a negative n: all.
func (s sending) answer(w http.ResponseWriter, offset, n int64) {
	status, length := http.StatusOK, s.payload.Bytes
	if n >= 0 {
		status, length = http.StatusPartialContent, n
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+n-1, s.payload.Bytes))
	}
	for name, value := range map[string]string{
		"Content-Type": anyType, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition": fmt.Sprintf("attachment; filename=%q", s.job+"-"+s.payload.SHA256[:12]),
		"Content-Length":      strconv.FormatInt(length, 10), "Cache-Control": "no-store", "Accept-Ranges": "bytes",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
}

// partOf returns the part that a Range header asks for; a negative n: all, as for a header that this API does not know
// and may ignore.
func partOf(header string, bytes int64) (offset, n int64, err error) {
	first, last, ranged := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if !ranged || !strings.HasPrefix(header, "bytes=") || first == "" {
		return 0, -1, nil
	}
	offset, err = strconv.ParseInt(first, 10, 64)
	end := bytes - 1
	if err == nil && last != "" {
		end, err = strconv.ParseInt(last, 10, 64)
	}
	switch {
	case err != nil || offset < 0 || end < offset && last != "":
		return 0, -1, nil
	case offset >= bytes:
		return 0, 0, newProblem(http.StatusRequestedRangeNotSatisfiable, "it has %d bytes, and none behind %d", bytes, offset)
	}
	return offset, min(end, bytes-1) - offset + 1, nil
}

// payloadProblem translates the errors of a payload store.
func (a *handlers) payloadProblem(r *http.Request, err error) *problem {
	switch {
	case errors.Is(err, errBrokeOff):
		return newProblem(http.StatusBadRequest, "%v", errBrokeOff)
	case errors.Is(err, payload.ErrTooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "%v", payload.ErrTooLarge)
	case errors.Is(err, payload.ErrNotFound):
		return a.problemOf(r, api.ErrNoPayload)
	case errors.Is(err, payload.ErrAltered):
		a.Logger.WarnContext(r.Context(), "the bytes of a payload are not those written", "job", r.PathValue("id"), "error", err)
		return newProblem(http.StatusInternalServerError, "%v", payload.ErrAltered)
	case errors.Is(err, payload.ErrDenied):
		a.Logger.ErrorContext(r.Context(), "the payload store denies access", "job", r.PathValue("id"), "error", err)
		return newProblem(http.StatusInternalServerError, "%v: what serves this has not the right to; its log says more", payload.ErrDenied)
	}
	return a.problemOf(r, err)
}
