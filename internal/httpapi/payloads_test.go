package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
)

// brokenLarge is a payload store that fails.
type brokenLarge struct{ err error }

func (b brokenLarge) WritePayload(context.Context, string, string, io.Reader) (makegood.Payload, error) {
	return makegood.Payload{}, b.err
}

func (b brokenLarge) OpenPayload(context.Context, string, makegood.Payload, int64, int64) (io.ReadCloser, error) {
	return nil, b.err
}

// brokenDoors are those of a store that fails.
type brokenDoors struct{ err error }

func (b brokenDoors) WriteDoor(context.Context, payload.Place, payload.Written) (payload.Door, error) {
	return payload.Door{}, b.err
}

func (b brokenDoors) ReadDoor(context.Context, string, makegood.Payload) (payload.Door, error) {
	return payload.Door{}, b.err
}

var (
	_ payload.Doors = brokenDoors{}
	_ control.Large = brokenLarge{}
)

// announced is the body that asks where "text" is written, and textAt where it is read.
const (
	textHash  = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	announced = `{"sha256":"` + textHash + `","bytes":4,"type":"text/plain"}`
	textAt    = "/api/jobs/p/payloads/" + textHash + "?bytes=4"
)

// talkOfPayloads talks to an engine, to what leads to a bucket, and to what has no store or a broken one.
// slowLarge says when a write has begun, and goes on when it may.
type slowLarge struct {
	brokenLarge
	begun, goOn chan struct{}
}

func (l slowLarge) WritePayload(context.Context, string, string, io.Reader) (makegood.Payload, error) {
	l.begun <- struct{}{}
	<-l.goOn
	return makegood.Payload{}, l.err
}

// uploading returns the address of an API to which as many payloads are being written as may be, until the test ends.
func (w *world) uploading(on func(httpapi.Config) string) string {
	large := slowLarge{brokenLarge{errSecret}, make(chan struct{}), make(chan struct{})}
	at := on(httpapi.Config{Jobs: largely(w.engine, large)})
	var writing sync.WaitGroup
	w.t.Cleanup(writing.Wait)
	w.t.Cleanup(func() { close(large.goOn) })
	for range limits.MaxUploads {
		r, err := http.NewRequestWithContext(context.Background(), "PUT", at+"/api/jobs/p/payloads", strings.NewReader("text"))
		check(w.t, err)
		writing.Go(func() {
			if answer, err := http.DefaultClient.Do(r); err == nil { // It ends after the test.
				_ = answer.Body.Close()
			}
		})
		<-large.begun
	}
	return at
}

// largely answers what is asked of the jobs of an engine, with another store of large payloads.
func largely(e *embedded.Engine, large control.Large) *control.Service {
	parts := e.Parts()
	parts.Large = large
	return control.New(parts)
}

func talkOfPayloads(w *world, talk func(string, conversation) reply) {
	quiet := slog.New(slog.DiscardHandler)
	on := func(c httpapi.Config) string {
		if c.Jobs == nil {
			c.Jobs = bare(w.engine)
		}
		c.Logger, c.Host = quiet, "127.0.0.1"
		return listen(w.t, c)
	}
	away, none := on(httpapi.Config{Doors: payloadtest.NewBucket(w.t)}), on(httpapi.Config{})
	post := func(body, header string, status int) conversation {
		return conversation{"POST", "/api/jobs/{id}/payloads", "/api/jobs/p/payloads", body, header, status}
	}
	put := func(body, header string, status int) conversation {
		return conversation{"PUT", "/api/jobs/{id}/payloads", "/api/jobs/p/payloads", body, header, status}
	}
	get := func(path, header string, status int) conversation {
		return conversation{"GET", "/api/jobs/{id}/payloads/{sha256}", path, "", header, status}
	}
	for _, c := range []struct {
		at string
		conversation
	}{
		{w.url, post(`{}`, "", 200)},
		{w.url, post(``, "Content-Type: ", 200)},
		{w.url, post(`{"type":"no type"}`, "", 400)},
		{w.url, post(`{}`, "Content-Type: text/plain", 415)},
		{w.url, post(`{}`, "Sec-Fetch-Site: cross-site", 403)},
		{w.url, post(`{}`, "Host: evil.example", 421)},
		{w.url, post(strings.Repeat(" ", 1<<20), "", 413)},
		{none, post(announced, "", 404)},
		{away, post(announced, "", 200)},
		{away, post(`{}`, "", 411)},
		{away, post(`{"sha256":"0","bytes":1}`, "", 400)},
		{away, post(`{"sha256":"`+textHash+`","bytes":104857601}`, "", 413)},
		{on(httpapi.Config{Doors: brokenDoors{errSecret}}), post(announced, "", 503)},
		{on(httpapi.Config{Doors: brokenDoors{payload.ErrDenied}}), post(announced, "", 500)},

		{away, put("text", "Content-Type: text/plain", 405)},
		{none, put("text", "Content-Type: text/plain", 404)},
		{w.url, put("text", "Content-Type: no type", 400)},
		{w.url, put("text", "Sec-Fetch-Site: cross-site", 403)},
		{w.url, put("text", "Host: evil.example", 421)},
		{w.url, put("text", "Content-Type: text/plain", 201)},
		{on(httpapi.Config{Jobs: largely(w.engine, brokenLarge{payload.ErrTooLarge})}), put("text", "", 413)},
		{on(httpapi.Config{Jobs: largely(w.engine, brokenLarge{errSecret})}), put("text", "", 503)},
		{on(httpapi.Config{Jobs: largely(w.engine, brokenLarge{payload.ErrDenied})}), put("text", "", 500)},
		{w.uploading(on), put("text", "", 429)},

		{w.url, get(textAt, "", 200)},
		{w.url, get(textAt, "Range: bytes=1-2", 206)},
		{w.url, get(textAt, "Range: bytes=4-", 416)},
		{w.url, get(textAt, "Sec-Fetch-Site: cross-site", 200)},
		{w.url, get(textAt, "Host: evil.example", 421)},
		{w.url, get("/api/jobs/other/payloads/"+textHash+"?bytes=4", "", 404)},
		{w.url, get("/api/jobs/p/payloads/"+textHash, "", 400)},
		{none, get(textAt, "", 404)},
		{away, get(textAt, "", 404)},
		{on(httpapi.Config{Door: httpapi.Submit}), get(textAt, "", 403)},
		{on(httpapi.Config{Doors: brokenDoors{errSecret}}), get(textAt, "", 503)},
		{on(httpapi.Config{Jobs: largely(w.engine, brokenLarge{payload.ErrAltered})}), get(textAt, "", 500)},
		{on(httpapi.Config{Doors: open{}}), get(textAt, "", 303)},
	} {
		talk(c.at, c.conversation)
	}
}

// open is a door that leads to a place that is none.
type open struct{ header http.Header }

func (o open) WriteDoor(context.Context, payload.Place, payload.Written) (payload.Door, error) {
	return payload.Door{}, nil
}

func (o open) ReadDoor(context.Context, string, makegood.Payload) (payload.Door, error) {
	return payload.Door{Method: http.MethodGet, URL: "https://bucket.example/key?X-Amz-Signature=x", Header: o.header}, nil
}

// Whoever follows a door brings no header of ours, so one that wants some is said, and followed by nobody who does not read it.
// No answer with a door in it is kept.
func TestADoorThatWantsHeadersIsFollowedByNobody(t *testing.T) {
	for wants, leads := range map[string]bool{"": true, "Host": true, "X-Amz-Key": false} {
		url := listen(t, httpapi.Config{Doors: open{http.Header{wants: {"1"}}}, Logger: slog.New(slog.DiscardHandler)})
		if wants == "" {
			url = listen(t, httpapi.Config{Doors: open{}, Logger: slog.New(slog.DiscardHandler)})
		}
		r := ask(t, "GET", url+textAt, "")
		var door httpapi.PayloadDoor
		check(t, json.Unmarshal(r.body, &door))
		if (r.header.Get("Location") != "") != leads || r.status != http.StatusSeeOther || door.URL == "" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q: got %d %v %s", wants, r.status, r.header, r.body)
		}
	}
}

// A part is answered as a part, and a header that is not known as if it were not there.
func TestAPartOfAPayloadIsRead(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.WritePayload(t.Context(), "p", "", strings.NewReader("text"))
	check(t, err)
	for asked, want := range map[string]string{
		"bytes=1-": "206 ext bytes 1-3/4", "bytes=0-0": "206 t bytes 0-0/4", "bytes=2-99": "206 xt bytes 2-3/4",
		"": "200 text ", "bytes=-2": "200 text ", "bytes=0-1,2-3": "200 text ", "lines=1-2": "200 text ", "bytes=3-1": "200 text ",
		"bytes=4-5": "416  bytes */4", "bytes=99999999999999999999-": "200 text ",
	} {
		r := ask(t, "GET", w.url+textAt, "", "Range: "+asked)
		if r.status == http.StatusRequestedRangeNotSatisfiable {
			r.body = nil
		}
		if got := fmt.Sprintf("%d %s %s", r.status, r.body, r.header.Get("Content-Range")); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}

// curl, told to follow, downloads from an engine and past a stack, and takes its key along to neither of them it was not meant for.
func TestCurlFollowsADoor(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("this test wants curl: it is what people type")
	}
	bucket := payloadtest.NewBucket(t)
	api := httptest.NewServer(httpapi.New(httpapi.Config{Doors: bucket, Logger: slog.New(slog.DiscardHandler)}))
	t.Cleanup(api.Close)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), curl, append([]string{"--silent", "--show-error", "--fail", "--noproxy", "*"}, args...)...).Output()
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			t.Fatalf("curl %v: %v\n%s", args, err, failed.Stderr)
		}
		check(t, err)
		return string(out)
	}
	// What people do by hand: ask, and send what they are told to.
	var door httpapi.PayloadDoor
	check(t, json.Unmarshal([]byte(run("--json", announced, api.URL+"/api/jobs/p/payloads")), &door))
	args := []string{"--request", door.Method, "--data-binary", "text", "--header", "Content-Type:"}
	for name, value := range door.Headers {
		args = append(args, "--header", name+": "+value)
	}
	run(append(args, door.URL)...)
	if door.Payload == nil || *door.Payload != (makegood.Payload{SHA256: textHash, Bytes: 4, Type: "text/plain"}) {
		t.Errorf("got the reference %v", door.Payload)
	}
	if got := run("--location", "--user", "ada:secret", "--header", "Authorization: Bearer key", api.URL+textAt); got != "text" {
		t.Errorf("got %q, want text", got)
	}
	if got := run("--location", "--user", "ada:secret", "--aws-sigv4", "aws:amz:eu-central-1:lambda", api.URL+textAt); got != "text" {
		t.Errorf("signed: got %q, want text", got)
	}
	if found := bucket.Credentials(); len(found) > 0 {
		t.Errorf("the bucket was sent %v", found)
	}
	if asked := strconv.Itoa(len(bucket.Asked())); asked != "3" {
		t.Errorf("the bucket was asked %s times, want 3", asked)
	}
}
