package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// payloadTimeout is how long a download may take: 100 MB by a line of 100 KB a second.
const payloadTimeout = 20 * time.Minute

// payloadLink leads to a large payload.
type payloadLink struct {
	// Says describes the payload in a few words.
	Says, Href string
}

// payloadsIn are the payloads that a value refers to. A value that only looks like a reference gives a dead link.
func payloadsIn(id string, value json.RawMessage) (links []payloadLink) {
	found, err := domain.FindPayloads(value)
	if err != nil {
		return nil
	}
	for _, p := range found {
		query := url.Values{"bytes": {strconv.FormatInt(p.Bytes, 10)}}
		if p.By != "" {
			query.Set("by", p.By)
		}
		links = append(links, payloadLink{p.String(), "jobs/" + id + "/payloads/" + p.SHA256 + "?" + query.Encode()})
	}
	return links
}

// download answers with a large payload, as a file: with the API's own answer if the API is in this process, else with
// the bytes that its client reads, so that the browser stays on the page and no presigned URL is in its history.
func (p *Page) download(w http.ResponseWriter, r *http.Request) {
	if p.API != nil {
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/api"+r.URL.Path, ""
		p.API.ServeHTTP(w, inner)
		return
	}
	n, err := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
	meant := makegood.Payload{SHA256: r.PathValue("sha256"), Bytes: n, By: r.FormValue("by")}
	if err != nil || meant.Check() != nil {
		p.refuse(w, r, nothingHere(r))
		return
	}
	// A writer that knows no deadlines has none to move.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(payloadTimeout))
	body, err := p.Jobs.OpenPayload(r.Context(), r.PathValue("id"), meant)
	if err != nil {
		p.refuse(w, r, p.problemOf(r, err))
		return
	}
	defer body.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", r.PathValue("id")+"-"+meant.SHA256[:12]))
	h.Set("Content-Length", strconv.FormatInt(meant.Bytes, 10))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if _, err := io.Copy(w, body); err != nil {
		p.Logger.WarnContext(r.Context(), "a payload could not be read to its end", "job", r.PathValue("id"), "error", err)
		panic(http.ErrAbortHandler) // Half of a file must not look like one.
	}
}

// payloadOf is the view of an input or an output.
func payloadOf(id, of string, value json.RawMessage, bytes int) payloadData {
	return payloadData{Job: id, Of: of, Value: pretty(value), Bytes: bytes, Payloads: payloadsIn(id, value)}
}

// payloadData is an input or an output, in full.
type payloadData struct {
	Job, Of string
	Value   string
	Bytes   int
	// Payloads are the large ones that it refers to.
	Payloads []payloadLink
}

// Title names the window.
func (d payloadData) Title() string { return d.Of + " of " + d.Job }

// askedWith loads the whole input of a step's task, or of its undo's.
func (p *Page) askedWith(r *http.Request) (any, error) {
	id, step, undo := r.PathValue("id"), r.FormValue("step"), r.FormValue("undo") == "true"
	all, err := p.Jobs.SentInputs(r.Context(), id, step)
	if err != nil {
		return nil, err
	}
	for _, in := range all.Inputs {
		if in.Step == step && in.Undo == undo {
			shown := inputSent(id, in)
			return payloadOf(id, step+", "+shown.Title+", "+shown.Says, in.Value, in.Bytes), nil
		}
	}
	return nil, &problem{status: http.StatusNotFound, Head: "There is no such input", Text: "No attempt had this input."}
}

// payload loads the input of a job, or the output of a step or its undo, if it is too large for the view of the job.
func (p *Page) payload(r *http.Request) (any, error) {
	if r.FormValue("asked") == "true" {
		return p.askedWith(r)
	}
	j, err := p.Jobs.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	name, undo := r.FormValue("step"), r.FormValue("undo") == "true"
	if name == "" {
		return payloadOf(j.ID, "Input", j.Input, j.InputBytes), nil
	}
	for _, s := range j.Steps {
		switch {
		case s.Name == name && !undo:
			return payloadOf(j.ID, "Output of "+name, s.Output, s.OutputBytes), nil
		case s.Name == name && s.Undo != nil:
			return payloadOf(j.ID, "Output of the undo of "+name, s.Undo.Output, s.Undo.OutputBytes), nil
		}
	}
	return nil, &problem{status: http.StatusNotFound, Head: "There is no such output", Text: "Job " + j.ID + " has no step " + strconv.Quote(name) + " with an output."}
}
