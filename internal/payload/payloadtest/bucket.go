package payloadtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// Bucket is a server that takes requests signed in their URL, as S3 does, for writers and readers of payloads through
// doors: it checks signature, time, length and hash, and refuses requests with a credential besides.
type Bucket struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	// late is how far the bucket's clock is ahead of the clock that makes doors.
	late time.Duration
	// first answer requests in place of the bucket, one each.
	first []http.HandlerFunc
	asked []string
	seen  []http.Header
}

var _ payload.Doors = (*Bucket)(nil)

// Signature is the parameter of a URL that must be nowhere else.
const Signature = "X-Amz-Signature"

// doorTime is for how long a door is open.
const doorTime = 15 * time.Minute

// credentials are headers that must not be sent to a bucket.
var credentials = []string{"Authorization", "Cookie", "X-Api-Key", "X-Amz-Security-Token", "X-Amz-Date", "Proxy-Authorization", "Makegood-Who"}

// NewBucket starts one, until the test's end.
func NewBucket(t testing.TB) *Bucket {
	b := &Bucket{objects: map[string][]byte{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// Late sets how much later the bucket's clock is.
func (b *Bucket) Late(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = d
}

// First has the next requests answered by others, one each.
func (b *Bucket) First(handlers ...http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first = append(b.first, handlers...)
}

// Asked are the methods of the requests, with their ranges.
func (b *Bucket) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// Change puts other bytes in place of what a payload refers to; nil: none.
func (b *Bucket) Change(job string, p makegood.Payload, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := keyIn(payload.Place{Job: job, By: p.By}, p.SHA256); body == nil {
		delete(b.objects, key)
	} else {
		b.objects[key] = body
	}
}

// Credentials are the headers of that kind that came with any request.
func (b *Bucket) Credentials() (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, header := range b.seen {
		for _, name := range credentials {
			if header.Get(name) != "" {
				found = append(found, name)
			}
		}
	}
	return found
}

func keyIn(at payload.Place, hash string) string { return "/" + at.Job + "/" + at.By + "/" + hash }

// WriteDoor is that of payload.Doors.
func (b *Bucket) WriteDoor(_ context.Context, at payload.Place, w payload.Written) (payload.Door, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := keyIn(at, w.SHA256)
	if body, is := b.objects[key]; is && int64(len(body)) == w.Bytes {
		return payload.Door{}, nil
	}
	hash, err := hex.DecodeString(w.SHA256)
	if err != nil {
		return payload.Door{}, err
	}
	header := http.Header{"X-Amz-Checksum-Sha256": {base64.StdEncoding.EncodeToString(hash)}, "Content-Length": {strconv.FormatInt(w.Bytes, 10)}}
	return b.door(http.MethodPut, key, header), nil
}

// ReadDoor is that of payload.Doors.
func (b *Bucket) ReadDoor(_ context.Context, job string, p makegood.Payload) (payload.Door, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := keyIn(payload.Place{Job: job, By: p.By}, p.SHA256)
	if _, is := b.objects[key]; !is {
		return payload.Door{}, payload.ErrNotFound
	}
	return b.door(http.MethodGet, key, http.Header{}), nil
}

func (b *Bucket) door(method, key string, header http.Header) payload.Door {
	ends := time.Now().Add(doorTime)
	query := url.Values{"X-Amz-Expires": {strconv.FormatInt(ends.Unix(), 10)}}
	query.Set(Signature, signed(method, key, query.Get("X-Amz-Expires"), header))
	return payload.Door{Method: method, URL: b.URL + key + "?" + query.Encode(), Header: header, Ends: ends}
}

// signed is the signature of a request, with the headers that it must have.
func signed(method, key, ends string, header http.Header) string {
	code := hmac.New(sha256.New, []byte("the bucket's own"))
	fmt.Fprint(code, method, key, ends, header.Get("Content-Length"), header.Get("X-Amz-Checksum-Sha256"))
	return hex.EncodeToString(code.Sum(nil))
}

// refuse answers as S3 does, with the request quoted.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>refused</Message><StringToSign>%s</StringToSign></Error>`, code, r.URL.Query().Get(Signature))
}

// instead returns the handler that answers a request in place of the bucket, and notes the request.
func (b *Bucket) instead(r *http.Request) (first http.HandlerFunc, late time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, strings.TrimSpace(r.Method+" "+r.Header.Get("Range")))
	b.seen = append(b.seen, r.Header.Clone())
	if len(b.first) > 0 {
		first, b.first = b.first[0], b.first[1:]
	}
	return first, b.late
}

// ServeHTTP answers a request.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, late := b.instead(r)
	if first != nil {
		first(w, r)
		return
	}
	header := r.Header.Clone()
	if r.Method == http.MethodPut {
		header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	ends := r.URL.Query().Get("X-Amz-Expires")
	closes, err := strconv.ParseInt(ends, 10, 64)
	switch {
	case slices.ContainsFunc(credentials, func(name string) bool { return r.Header.Get(name) != "" }):
		refuse(w, r, http.StatusBadRequest, "InvalidArgument")
	case err != nil || r.URL.Query().Get(Signature) != signed(r.Method, r.URL.Path, ends, header):
		refuse(w, r, http.StatusForbidden, "SignatureDoesNotMatch")
	case time.Now().Add(late).Unix() > closes:
		refuse(w, r, http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut:
		b.put(w, r)
	default:
		b.get(w, r)
	}
}

func (b *Bucket) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	hash := sha256.Sum256(body)
	if base64.StdEncoding.EncodeToString(hash[:]) != r.Header.Get("X-Amz-Checksum-Sha256") {
		refuse(w, r, http.StatusBadRequest, "XAmzContentChecksumMismatch")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[r.URL.Path] = body
}

func (b *Bucket) get(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	body, is := b.objects[r.URL.Path]
	b.mu.Unlock()
	if !is {
		refuse(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("Content-Type", "binary/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
