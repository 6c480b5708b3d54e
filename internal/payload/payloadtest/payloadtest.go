// Package payloadtest tests every adapter of payload.Store against its contract. One test is one rule of
// internal/payload. It does not depend on the adapter; the ids are new in every run, and no test needs an empty store.
package payloadtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// Harness gives one test its store.
type Harness struct {
	Store payload.Store
	// Doors are for RunDoors.
	Doors payload.Doors
	// Damage changes one stored byte in the middle; Truncate removes the last byte. Nil: this store cannot be damaged from
	// outside.
	Damage, Truncate func(job string, p makegood.Payload)
	// Heap is how much memory reading and writing 100 MB may take; zero: as much as it likes.
	Heap uint64
	// Skip100MB leaves out what takes long there: the whole size is held by the tests of another adapter.
	Skip100MB bool
}

// Run runs the suite. It calls newHarness once for each test.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, r := range []struct {
		name string
		test func(w *world)
	}{
		{"what was written is read, of every length", everyLength},
		{"a part is read", parts},
		{"a part that is not there is refused", wrongParts},
		{"the same bytes are there once, and another job's and writer's are others", apart},
		{"what is not there is not found", notThere},
		{"another length is no such payload", anotherLength},
		{"a reader that fails leaves nothing", failingReader},
		{"who gives up leaves nothing", givesUp},
		{"a place that cannot be is refused", wrongPlaces},
		{"what was altered is an error at the latest at its end", altered},
		{"what was cut off is an error", truncated},
		{"writers of the same bytes do not disturb each other", together},
		{"the limit goes through in little memory, and a byte more is refused", limit},
	} {
		t.Run(r.name, func(t *testing.T) {
			r.test(newWorld(t, newHarness(t)))
		})
	}
}

func newWorld(t *testing.T, h Harness) *world {
	return &world{T: t, Harness: h, job: "job-" + strings.ToLower(rand.Text()[:12])}
}

type world struct {
	*testing.T
	Harness
	job string
}

func (w *world) write(at payload.Place, value []byte) makegood.Payload {
	w.Helper()
	written, err := w.Store.Write(w.Context(), at, bytes.NewReader(value))
	if err != nil {
		w.Fatalf("write %d bytes: %v", len(value), err)
	}
	digest := sha256.Sum256(value)
	if want := (payload.Written{SHA256: hex.EncodeToString(digest[:]), Bytes: int64(len(value))}); written != want {
		w.Fatalf("got %+v, want %+v", written, want)
	}
	return makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes, By: at.By}
}

func (w *world) read(job string, p makegood.Payload, offset, n int64) ([]byte, error) {
	w.Helper()
	r, err := w.Store.Open(w.Context(), job, p, offset, n)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			w.Errorf("close: %v", err)
		}
	}()
	return io.ReadAll(r)
}

func (w *world) mustRead(job string, p makegood.Payload, offset, n int64, want []byte) {
	w.Helper()
	if got, err := w.read(job, p, offset, n); err != nil || !bytes.Equal(got, want) {
		w.Errorf("bytes %d and %d more of %v: got %d bytes, %v, want %d", offset, n, p, len(got), err, len(want))
	}
}

// pattern is bytes that differ at every place.
func pattern(n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(i*7 + i>>8 + i>>16)
	}
	return value
}

func everyLength(w *world) {
	for _, n := range []int{0, 1, 4096, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 300<<10 + 17} {
		value := pattern(n)
		p := w.write(payload.Place{Job: w.job}, value)
		w.mustRead(w.job, p, 0, -1, value)
		w.mustRead(w.job, p, 0, p.Bytes, value)
		if err := w.Store.Keep(w.Context(), w.job, p); err != nil {
			w.Errorf("keep %d bytes: %v", n, err)
		}
	}
}

func parts(w *world) {
	value := pattern(200 << 10)
	p := w.write(payload.Place{Job: w.job, By: "report"}, value)
	for _, part := range [][2]int64{{0, 0}, {0, 1}, {1, 10}, {65_535, 2}, {65_536, 1}, {100_000, 104_800}, {204_799, 1}, {204_800, 0}, {70_000, 134_800}} {
		w.mustRead(w.job, p, part[0], part[1], value[part[0]:part[0]+part[1]])
	}
	w.mustRead(w.job, p, 65_536, -1, value[65_536:])
	w.mustRead(w.job, p, 204_800, -1, nil)
}

func wrongParts(w *world) {
	p := w.write(payload.Place{Job: w.job}, pattern(100))
	for _, part := range [][2]int64{{-1, 1}, {101, -1}, {0, 101}, {100, 1}, {1 << 62, 1 << 62}} {
		if got, err := w.read(w.job, p, part[0], part[1]); err == nil {
			w.Errorf("%v: got %d bytes and no error", part, len(got))
		}
	}
}

func apart(w *world) {
	value := pattern(1000)
	p := w.write(payload.Place{Job: w.job}, value)
	if again := w.write(payload.Place{Job: w.job}, value); again != p {
		w.Errorf("got %v again, want %v", again, p)
	}
	w.mustRead(w.job, p, 0, -1, value)
	other := p
	other.By = "report"
	for job, ref := range map[string]makegood.Payload{w.job + "-other": p, w.job: other} {
		if _, err := w.read(job, ref, 0, -1); !errors.Is(err, payload.ErrNotFound) {
			w.Errorf("job %s by %q: got %v, want %v", job, ref.By, err, payload.ErrNotFound)
		}
		if err := w.Store.Keep(w.Context(), job, ref); !errors.Is(err, payload.ErrNotFound) {
			w.Errorf("keep for job %s by %q: got %v, want %v", job, ref.By, err, payload.ErrNotFound)
		}
	}
	if upper := strings.ToUpper(w.job); upper != w.job {
		if _, err := w.read(upper, p, 0, -1); !errors.Is(err, payload.ErrNotFound) {
			w.Errorf("a job whose id differs in case: got %v, want %v", err, payload.ErrNotFound)
		}
	}
}

func notThere(w *world) {
	p := makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10}
	if _, err := w.read(w.job, p, 0, -1); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("read: got %v, want %v", err, payload.ErrNotFound)
	}
	if err := w.Store.Keep(w.Context(), w.job, p); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("keep: got %v, want %v", err, payload.ErrNotFound)
	}
}

func anotherLength(w *world) {
	p := w.write(payload.Place{Job: w.job}, pattern(100_000))
	for _, n := range []int64{99_999, 100_001, 0} {
		lie := p
		lie.Bytes = n
		if got, err := w.read(w.job, lie, 0, -1); !errors.Is(err, payload.ErrAltered) {
			w.Errorf("read as %d bytes: got %d bytes, %v, want %v", n, len(got), err, payload.ErrAltered)
		}
		if err := w.Store.Keep(w.Context(), w.job, lie); !errors.Is(err, payload.ErrAltered) {
			w.Errorf("keep as %d bytes: got %v, want %v", n, err, payload.ErrAltered)
		}
	}
}

var errBroken = errors.New("the line broke")

// broken gives some bytes, and then fails, as the body of a request from a lost sender.
type broken struct {
	left int
	with error
}

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.with
	}
	n := min(len(p), b.left)
	clear(p[:n])
	b.left -= n
	return n, nil
}

func failingReader(w *world) {
	for _, with := range []error{errBroken, io.ErrUnexpectedEOF} {
		for _, n := range []int{0, 100, 64 << 10, 100_000} {
			if _, err := w.Store.Write(w.Context(), payload.Place{Job: w.job}, &broken{n, with}); !errors.Is(err, with) {
				w.Errorf("after %d bytes: got %v, want %v", n, err, with)
			}
			digest := sha256.Sum256(make([]byte, n))
			p := makegood.Payload{SHA256: hex.EncodeToString(digest[:]), Bytes: int64(n)}
			if err := w.Store.Keep(w.Context(), w.job, p); !errors.Is(err, payload.ErrNotFound) {
				w.Errorf("after %d bytes: what came is there: %v", n, err)
			}
		}
	}
}

func givesUp(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	value := pattern(100_000)
	if _, err := w.Store.Write(ctx, payload.Place{Job: w.job}, bytes.NewReader(value)); !errors.Is(err, context.Canceled) {
		w.Errorf("got %v, want %v", err, context.Canceled)
	}
	digest := sha256.Sum256(value)
	if err := w.Store.Keep(w.Context(), w.job, makegood.Payload{SHA256: hex.EncodeToString(digest[:]), Bytes: 100_000}); !errors.Is(err, payload.ErrNotFound) {
		w.Errorf("it is there: %v", err)
	}
}

func wrongPlaces(w *world) {
	for _, at := range []payload.Place{{}, {Job: ".."}, {Job: "a/b"}, {Job: w.job, By: "../x"}, {Job: w.job, By: "a b"}} {
		if _, err := w.Store.Write(w.Context(), at, strings.NewReader("x")); err == nil {
			w.Errorf("%+v was taken", at)
		}
	}
}

func altered(w *world) {
	if w.Damage == nil {
		return
	}
	value := pattern(300_000)
	p := w.write(payload.Place{Job: w.job}, value)
	w.Damage(w.job, p)
	if got, err := w.read(w.job, p, 0, -1); !errors.Is(err, payload.ErrAltered) {
		w.Errorf("got %d bytes, %v, want %v", len(got), err, payload.ErrAltered)
	}
}

func truncated(w *world) {
	if w.Truncate == nil {
		return
	}
	p := w.write(payload.Place{Job: w.job}, pattern(300_000))
	w.Truncate(w.job, p)
	if got, err := w.read(w.job, p, 0, -1); !errors.Is(err, payload.ErrAltered) {
		w.Errorf("got %d bytes, %v, want %v", len(got), err, payload.ErrAltered)
	}
	if err := w.Store.Keep(w.Context(), w.job, p); !errors.Is(err, payload.ErrAltered) {
		w.Errorf("keep: got %v, want %v", err, payload.ErrAltered)
	}
}

func together(w *world) {
	value := pattern(150_000)
	p := w.write(payload.Place{Job: w.job}, value)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := w.Store.Write(w.Context(), payload.Place{Job: w.job}, bytes.NewReader(value)); err != nil {
				w.Errorf("write: %v", err)
			}
			w.mustRead(w.job, p, 0, -1, value)
			if err := w.Store.Keep(w.Context(), w.job, p); err != nil {
				w.Errorf("keep: %v", err)
			}
		})
	}
	all.Wait()
}

// stream gives n bytes, and counts how many were asked for.
type stream struct{ left, given int64 }

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), s.left)
	for i := range p[:n] {
		p[i] = byte((s.given + int64(i)) >> 12)
	}
	s.left, s.given = s.left-n, s.given+n
	return int(n), nil
}

func limit(w *world) {
	beyond := &stream{left: 1 << 40}
	if _, err := w.Store.Write(w.Context(), payload.Place{Job: w.job}, beyond); !errors.Is(err, payload.ErrTooLarge) {
		w.Errorf("a byte more: got %v, want %v", err, payload.ErrTooLarge)
	}
	if most := int64(makegood.MaxLargePayloadBytes + 1); beyond.given > most {
		w.Errorf("%d bytes were read of what is too large, want at most %d", beyond.given, most)
	}
	if w.Skip100MB {
		return
	}
	heap := watchHeap()
	written, err := w.Store.Write(w.Context(), payload.Place{Job: w.job}, &stream{left: makegood.MaxLargePayloadBytes})
	if err != nil || written.Bytes != makegood.MaxLargePayloadBytes {
		w.Fatalf("got %+v, %v, want %d bytes", written, err, makegood.MaxLargePayloadBytes)
	}
	r, err := w.Store.Open(w.Context(), w.job, makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes}, 0, -1)
	if err != nil {
		w.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil || n != written.Bytes {
		w.Errorf("read %d bytes, %v, want %d", n, err, written.Bytes)
	}
	if grew := heap(); w.Heap > 0 && grew > w.Heap {
		w.Errorf("the heap grew by %s, want at most %s", megabytes(grew), megabytes(w.Heap))
	} else {
		w.Logf("the heap grew by %s", megabytes(grew))
	}
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// watchHeap returns a function that returns the heap's growth since, in bytes obtained from the system: in this figure
// the runtime never gives any back.
func watchHeap() func() uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	return func() uint64 {
		runtime.ReadMemStats(&after)
		return max(after.HeapSys, before.HeapSys) - before.HeapSys
	}
}
