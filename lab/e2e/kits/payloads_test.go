//go:build kits || aws

package kits_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// payloads are what an engine has of payloads, and what goes wrong with them.
type payloads struct {
	// kept are the bytes by job and hash. Of a job in drained only how many there were is known, and of one in endless every
	// payload is there, all nulls.
	kept     map[string]map[string][]byte
	drained  map[string]bool
	endless  map[string]bool
	carried  map[string][]carried
	carrying map[string][]fault
}

// carried is a request about a payload, as it came.
type carried struct {
	method, kind, part string
	length             int64
}

func newPayloads() payloads {
	return payloads{
		kept: map[string]map[string][]byte{}, drained: map[string]bool{}, endless: map[string]bool{}, carried: map[string][]carried{}, carrying: map[string][]fault{},
	}
}

// lay lays a payload down for a job, and returns the reference to it.
func (e *engine) lay(job string, text []byte, kind string) message {
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	e.happen(func() {
		if e.kept[job] == nil {
			e.kept[job] = map[string][]byte{}
		}
		e.kept[job][hash] = text
	})
	inner := message{"sha256": hash, "bytes": len(text)}
	if kind != "" {
		inner["type"] = kind
	}
	return message{"$payload": inner}
}

// holder reads for which attempt a request is, and checks that it is as a heartbeat has it.
func (e *engine) holder(r *http.Request) (job string, f fault) {
	var m message
	if err := json.Unmarshal([]byte(r.Header.Get("Makegood-Holder")), &m); err != nil {
		e.t.Errorf("%s of a payload: the header %q: %v", r.Method, r.Header.Get("Makegood-Holder"), err)
	}
	job, _ = m["job"].(string)
	if want := lockedBy(job); m["step"] != "s" || m["attempt"] != 2.0 || m["token"] == nil || m["lockedBy"] != want {
		e.t.Errorf("%s of a payload is for %v", r.Method, m)
	}
	e.happen(func() {
		e.carried[job] = append(e.carried[job], carried{r.Method, r.Header.Get("Content-Type"), r.Header.Get("Range"), r.ContentLength})
		if len(e.carrying[job]) > 0 {
			f, e.carrying[job] = e.carrying[job][0], e.carrying[job][1:]
		}
	})
	return job, f
}

func (e *engine) writePayload(w http.ResponseWriter, r *http.Request) {
	job, f := e.holder(r)
	if f != (fault{}) {
		_, _ = io.CopyN(io.Discard, r.Body, f.after) // what comes of it is the fault's
		w.Header().Set("Connection", "close")
		f.fails(w)
		return
	}
	hash, text := sha256.New(), &bytes.Buffer{}
	to := io.MultiWriter(hash, text)
	if e.drained[job] {
		to = hash
	}
	n, err := io.Copy(to, r.Body)
	if err != nil {
		e.happen(func() { e.carried[job] = append(e.carried[job], carried{method: "broken off"}) })
		return
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	inner := message{"sha256": sum, "bytes": n, "by": r.PathValue("agent")}
	if kind := r.Header.Get("Content-Type"); kind != "application/octet-stream" {
		inner["type"] = kind
	}
	if !e.drained[job] {
		e.lay(job, text.Bytes(), "")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(message{"$payload": inner})
}

// nulls has them wherever it is read.
type nulls struct{}

func (nulls) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

func (e *engine) readPayload(w http.ResponseWriter, r *http.Request) {
	job, f := e.holder(r)
	if f.status != 0 {
		f.fails(w)
		return
	}
	e.mu.Lock()
	text, there := e.kept[job][r.PathValue("sha256")]
	endless := e.endless[job]
	e.mu.Unlock()
	size, err := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
	var all io.ReaderAt = bytes.NewReader(text)
	if endless {
		all = nulls{}
	} else if !there || err != nil || size != int64(len(text)) {
		fault{status: http.StatusNotFound, final: true}.fails(w)
		return
	}
	first, last, status := int64(0), size-1, http.StatusOK
	if part := r.Header.Get("Range"); part != "" {
		if _, err := fmt.Sscanf(part, "bytes=%d-%d", &first, &last); err != nil {
			e.t.Errorf("the header Range is %q", part)
		}
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", cmp.Or(f.part, fmt.Sprintf("bytes %d-%d/%d", first, last, size)))
	}
	if f.encoding != "" {
		w.Header().Set("Content-Encoding", f.encoding)
	}
	w.Header().Set("Content-Length", strconv.FormatInt(last-first+1, 10))
	w.WriteHeader(status)
	body := io.NewSectionReader(all, first, last-first+1)
	if f.cut {
		_, _ = io.CopyN(w, body, f.after)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.Copy(w, body)
}

// lines are the bytes that the suite's agents write.
func lines(n int) []byte {
	return bytes.Repeat([]byte("0123456789abcde\n"), n/16+1)[:n]
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// referenceTo is a reference to what the suite's agents write.
func referenceTo(text []byte, kind string) message {
	inner := message{"sha256": hashOf(text), "bytes": float64(len(text)), "by": "probe"}
	if kind != "" {
		inner["type"] = kind
	}
	return message{"$payload": inner}
}
