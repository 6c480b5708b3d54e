package payloadtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// RunDoors tests the contract of a store's doors, as a client without any right of its own. Each Harness has Doors.
func RunDoors(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, r := range []struct {
		name string
		test func(w *world)
	}{
		{"what went through a door is there", throughADoor},
		{"the store refuses other bytes", otherBytes},
		{"the store refuses more and fewer bytes", otherLength},
		{"what is there already needs no door", thereAlready},
		{"a door that cannot be is refused", wrongDoors},
		{"what is there is read through a door", readThrough},
		{"there is no door to what is not there", noDoor},
	} {
		t.Run(r.name, func(t *testing.T) { r.test(newWorld(t, newHarness(t))) })
	}
}

func writtenOf(value []byte) payload.Written {
	digest := sha256.Sum256(value)
	return payload.Written{SHA256: hex.EncodeToString(digest[:]), Bytes: int64(len(value))}
}

func (w *world) door(at payload.Place, want payload.Written) payload.Door {
	w.Helper()
	d, err := w.Doors.WriteDoor(w.Context(), at, want)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// through sends the request of a door, and returns the answer.
func (w *world) through(d payload.Door, body []byte) (status int, got []byte) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), d.Method, d.URL, bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header = d.Header.Clone()
	// One connection each: a server that refuses a body may not have read it.
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err = io.ReadAll(answer.Body); err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, got
}

func throughADoor(w *world) {
	for _, by := range []string{"", "report"} {
		for _, value := range [][]byte{pattern(300_000), {}} {
			at, written := payload.Place{Job: w.job, By: by}, writtenOf(value)
			d := w.door(at, written)
			p := makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes, By: by}
			if err := w.Store.Keep(w.Context(), w.job, p); !errors.Is(err, payload.ErrNotFound) {
				w.Errorf("before anybody went through: got %v, want %v", err, payload.ErrNotFound)
			}
			// A client that is not sure of success repeats the request.
			for range 2 {
				if status, said := w.through(d, value); status != http.StatusOK {
					w.Fatalf("%d bytes by %q: got %d, %.300s", len(value), by, status, said)
				}
			}
			if err := w.Store.Keep(w.Context(), w.job, p); err != nil {
				w.Error(err)
			}
			w.mustRead(w.job, p, 0, -1, value)
		}
	}
}

func otherBytes(w *world) {
	value := pattern(100_000)
	other := bytes.Clone(value)
	other[50_000] ^= 1
	w.refuses(value, other)
}

func otherLength(w *world) {
	value := pattern(100_000)
	w.refuses(value, pattern(100_001))
	w.refuses(value, value[:99_999])
	w.refuses(value, nil)
}

// refuses holds that a door for some bytes lets no others through.
func (w *world) refuses(value, other []byte) {
	w.Helper()
	written := writtenOf(value)
	d := w.door(payload.Place{Job: w.job}, written)
	if status, said := w.through(d, other); status < 400 || status >= 500 {
		w.Errorf("%d other bytes: got %d, %.300s, want them refused", len(other), status, said)
	}
	p := makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes}
	if err := w.Store.Keep(w.Context(), w.job, p); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("after %d other bytes: got %v, want %v", len(other), err, payload.ErrNotFound)
	}
}

func thereAlready(w *world) {
	value := pattern(1000)
	w.write(payload.Place{Job: w.job}, value)
	if d := w.door(payload.Place{Job: w.job}, writtenOf(value)); d.Method != "" || d.URL != "" {
		w.Errorf("got a door to %s, want none", d.Method)
	}
	if d := w.door(payload.Place{Job: w.job, By: "report"}, writtenOf(value)); d.Method == "" {
		w.Error("got no door for another writer")
	}
}

func wrongDoors(w *world) {
	fine := writtenOf(pattern(10))
	tooLarge, notHash, negative := fine, fine, fine
	tooLarge.Bytes, notHash.SHA256, negative.Bytes = makegood.MaxLargePayloadBytes+1, "../../x", -1
	for _, c := range []struct {
		at payload.Place
		w  payload.Written
	}{{payload.Place{}, fine}, {payload.Place{Job: "a/b"}, fine}, {payload.Place{Job: w.job, By: "../x"}, fine}, {payload.Place{Job: w.job}, notHash}, {payload.Place{Job: w.job}, negative}} {
		if _, err := w.Doors.WriteDoor(w.Context(), c.at, c.w); err == nil {
			w.Errorf("%+v, %+v was taken", c.at, c.w)
		}
	}
	if _, err := w.Doors.WriteDoor(w.Context(), payload.Place{Job: w.job}, tooLarge); !errors.Is(err, payload.ErrTooLarge) {
		w.Errorf("a byte more than the limit: got %v, want %v", err, payload.ErrTooLarge)
	}
}

func readThrough(w *world) {
	for _, value := range [][]byte{pattern(300_000), {}} {
		p := w.write(payload.Place{Job: w.job, By: "report"}, value)
		p.Type = "text/html; charset=utf-8"
		d, err := w.Doors.ReadDoor(w.Context(), w.job, p)
		if err != nil {
			w.Fatal(err)
		}
		if status, got := w.through(d, nil); status != http.StatusOK || !bytes.Equal(got, value) {
			w.Errorf("got %d with %d bytes, want 200 with %d", status, len(got), len(value))
		}
	}
}

func noDoor(w *world) {
	missing := makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10}
	if _, err := w.Doors.ReadDoor(w.Context(), w.job, missing); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("got %v, want %v", err, payload.ErrNotFound)
	}
	p := w.write(payload.Place{Job: w.job}, pattern(100))
	lie := p
	lie.Bytes = 99
	if _, err := w.Doors.ReadDoor(w.Context(), w.job, lie); !errors.Is(err, payload.ErrAltered) {
		w.Errorf("got %v, want %v", err, payload.ErrAltered)
	}
	if _, err := w.Doors.ReadDoor(w.Context(), w.job+"-other", p); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("another job's: got %v, want %v", err, payload.ErrNotFound)
	}
}
