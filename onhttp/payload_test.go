package onhttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
)

// What one step writes another reads, from whatever it is written; a part is read as a part.
func TestPayloadsGoThroughTheDoor(t *testing.T) {
	text := noise(3 << 20)
	for name, from := range map[string]func() io.Reader{
		"what can be read again": func() io.Reader { return bytes.NewReader(text) },
		"what comes once":        func() io.Reader { return only{bytes.NewReader(text)} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPrinting(t)
			p.done(p.print(write(from), func(ctx context.Context, ref makegood.Payload) (any, error) {
				if ref.By != "press" || ref.Type != "text/plain" {
					return nil, agent.Final(errors.New("got " + ref.String()))
				}
				part, err := agent.OpenPayloadRange(ctx, ref, 1<<20, 10)
				if err != nil {
					return nil, err
				}
				got, err := io.ReadAll(part)
				if err = errors.Join(err, part.Close()); err != nil || !bytes.Equal(got, text[1<<20:1<<20+10]) {
					return nil, agent.Final(errors.New("a part is another"))
				}
				if _, err = agent.OpenPayloadRange(ctx, ref, 3<<20, 1); err == nil {
					return nil, agent.Final(errors.New("a part that is not there was opened"))
				}
				return same(text)(ctx, ref)
			}))
		})
	}
}

// An output above the limit of a message becomes a payload, and an input that is a value is read from one.
func TestLargeValuesAreWrittenAndReadByThemselves(t *testing.T) {
	p := newPrinting(t)
	long := strings.Repeat("ü", 300_000)
	if _, err := p.engine().Submit(t.Context(), makegood.Submission{Workflow: "press", ID: "p-1", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	p.run(agent.New("press",
		agent.Do("write", func(context.Context, any) (string, error) { return long, nil }),
		agent.Do("read", func(ctx context.Context, in struct {
			Report makegood.Payload `json:"report"`
			Job    string           `json:"job"`
		},
		) (string, error) {
			_, err := same([]byte(`"`+long+`"`))(ctx, in.Report)
			return long, err
		}),
	))
	job, err := p.engine().Wait(t.Context(), "p-1")
	if err != nil {
		t.Fatal(err)
	}
	p.done(job)
	for _, s := range job.Steps {
		if ref, whole := domain.WholePayload(s.Output); !whole || ref.By != "press" || ref.Type != makegood.PayloadJSON {
			t.Errorf("step %s: got %.100s, want a payload", s.Name, s.Output)
		}
	}
}

// A line that breaks, and an engine that is busy, cost no attempt where what is sent can be read again, nor any download.
func TestWhatBreaksOffGoesOn(t *testing.T) {
	text := noise(3 << 20)
	p := newPrinting(t)
	p.faults = append(p.faults, breaks, unavailable, breaks)
	p.done(p.print(write(func() io.Reader { return bytes.NewReader(text) }), func(ctx context.Context, ref makegood.Payload) (any, error) {
		p.mu.Lock()
		p.faults = append(p.faults, unavailable, breaks, breaks)
		p.mu.Unlock()
		return same(text)(ctx, ref)
	}))
	want := "PUT, PUT, PUT, PUT, GET, GET, GET bytes=1048576-3145727, GET bytes=2097152-3145727"
	if got := strings.Join(p.asked, ", "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// refuses is an engine that refuses what is on its way, as one does to which the attempt is over.
func refuses(_ http.Handler, w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"error": "as scripted"}`)
}

// Whoever is refused in the middle is not left to send the rest, and what has not begun is begun again.
func TestWhatIsRefusedInTheMiddleFailsItsAttempt(t *testing.T) {
	text := noise(64 << 20)
	p := newPrinting(t)
	p.faults = append(p.faults, unavailable, refuses)
	job := p.print(write(func() io.Reader { return only{bytes.NewReader(text)} }), same(text))
	p.done(job)
	if job.Steps[0].Attempt != 2 || len(p.asked) < 3 {
		t.Errorf("it took %d attempts and %v, want 2 and PUT, PUT, PUT", job.Steps[0].Attempt, p.asked)
	}
}

// What can be read only once fails its attempt where the line breaks, and the next attempt writes it; nothing is left of the first.
func TestWhatComesOnceIsWrittenByTheNextAttempt(t *testing.T) {
	text := noise(3 << 20)
	p := newPrinting(t)
	p.faults = append(p.faults, breaks)
	job := p.print(write(func() io.Reader { return only{bytes.NewReader(text)} }), same(text))
	p.done(job)
	if job.Steps[0].Attempt != 2 {
		t.Errorf("it took %d attempts, want 2", job.Steps[0].Attempt)
	}
}

// An engine that ends, and starts again, while an agent reads or writes has its attempts still: both go on.
func TestAnEngineStartsAgainInTheMiddle(t *testing.T) {
	text := noise(8 << 20)
	p := newPrinting(t)
	var once [2]sync.Once
	job := p.print(write(func() io.Reader {
		return &pausing{Reader: bytes.NewReader(text), pass: 2, then: func() { once[0].Do(p.restart) }}
	}),
		func(ctx context.Context, ref makegood.Payload) (any, error) {
			r, err := agent.OpenPayload(ctx, ref)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			head := make([]byte, 1<<20)
			if _, err = io.ReadFull(r, head); err != nil {
				return nil, err
			}
			once[1].Do(p.restart)
			rest, err := io.ReadAll(r)
			if err == nil && !bytes.Equal(append(head, rest...), text) {
				err = agent.Final(errors.New("it is another"))
			}
			return len(rest), err
		})
	p.done(job)
	if a, b := job.Steps[0].Attempt, job.Steps[1].Attempt; a != 1 || b != 1 {
		t.Errorf("it took %d and %d attempts, want one each", a, b)
	}
}

// pausing does something after the first megabyte of a pass.
type pausing struct {
	*bytes.Reader
	pass int
	then func()
}

func (p *pausing) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		p.pass--
	}
	return p.Reader.Seek(offset, whence)
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.pass == 0 && p.Reader.Len() < int(p.Reader.Size())-1<<20 {
		p.then()
	}
	return p.Reader.Read(b[:min(len(b), 64<<10)])
}

type nulls struct{}

func (nulls) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What would come again with every attempt is final at once, and says what it is; a disk that fails is tried again.
func TestWhatIsWrongWithAPayloadIsFinal(t *testing.T) {
	small := func() io.Reader { return strings.NewReader("text") }
	opens := func(change func(*makegood.Payload)) reads {
		return func(ctx context.Context, p makegood.Payload) (any, error) {
			change(&p)
			return same([]byte("text"))(ctx, p)
		}
	}
	for says, c := range map[string]struct {
		write writes
		read  reads
	}{
		"there are more than 104857600 bytes": {write: write(func() io.Reader { return only{nulls{}} })},
		"the limit of a payload":              {write: write(func() io.Reader { return io.NewSectionReader(zeros{}, 0, makegood.MaxLargePayloadBytes+1) })},
		"type is \"no type\"": {write: func(ctx context.Context) (any, error) {
			return agent.WritePayload(ctx, "no type", strings.NewReader("x"))
		}},
		"the payload is not there":        {write(small), opens(func(p *makegood.Payload) { p.SHA256 = strings.Repeat("ab", 32) })},
		"not there, for this job and by":  {write(small), opens(func(p *makegood.Payload) { p.By = "" })},
		"the bytes of the payload are":    {write(small), opens(func(p *makegood.Payload) { p.Bytes = 3 })},
		"sha256 is \"ab\": want 64 hex":   {write(small), opens(func(p *makegood.Payload) { p.SHA256 = "ab" })},
		"bytes 0 to 0 of a payload of -1": {write(small), opens(func(p *makegood.Payload) { p.Bytes = -1 })},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			p := newPrinting(t)
			job := p.print(c.write, c.read)
			step := job.Steps[0]
			if c.read != nil {
				step = job.Steps[1]
			}
			if step.Attempt != 1 || step.Error == nil || step.Error.Retryable || !strings.Contains(step.Error.Message, says) {
				t.Errorf("got %+v after %d attempts, want a final error that says %q", step.Error, step.Attempt, says)
			}
			p.left()
		})
	}
}

// zeros has them wherever it is read.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// What was altered where it is kept is final, too, also where that shows only on the way.
func TestAlteredBytesAreFinal(t *testing.T) {
	text := noise(3 << 20)
	for name, at := range map[string]int64{"at its beginning": 100, "on the way": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			p := newPrinting(t)
			job := p.print(write(func() io.Reader { return bytes.NewReader(text) }), func(ctx context.Context, ref makegood.Payload) (any, error) {
				p.alter(ref, at)
				return same(text)(ctx, ref)
			})
			if step := job.Steps[1]; step.Attempt != 1 || step.Error == nil || step.Error.Retryable || !strings.Contains(step.Error.Message, "the bytes of the payload are not those written") {
				t.Errorf("got %+v after %d attempts", step.Error, step.Attempt)
			}
		})
	}
}

// alter changes a byte of the file of a payload.
func (p *printing) alter(ref makegood.Payload, at int64) {
	found := false
	err := filepath.WalkDir(filepath.Join(p.dir, "payloads"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, ref.SHA256) {
			return err
		}
		found = true
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		var b [1]byte
		if _, err = f.ReadAt(b[:], at); err == nil {
			b[0] ^= 1
			_, err = f.WriteAt(b[:], at)
		}
		return errors.Join(err, f.Close())
	})
	if err != nil || !found {
		p.t.Errorf("the file of %v: found %v, %v", ref, found, err)
	}
}

// A store that fails is not final: the disk may be empty again, and the next attempt succeed.
func TestADiskThatIsFullIsTriedAgain(t *testing.T) {
	p := newPrinting(t)
	incoming := filepath.Join(p.dir, "payloads", "incoming")
	if _, err := p.engine().WritePayload(t.Context(), "p-1", "", strings.NewReader("another")); err != nil {
		t.Fatal(err)
	}
	attempt := 0
	job := p.print(func(ctx context.Context) (any, error) {
		if attempt++; attempt == 1 {
			// Nothing can be written where there is no folder: the store fails as on a full disk.
			if err := os.Rename(incoming, incoming+"-away"); err != nil {
				return nil, agent.Final(err)
			}
			defer func() { _ = os.Rename(incoming+"-away", incoming) }()
			return agent.WritePayload(ctx, "", only{strings.NewReader("x")})
		}
		return agent.WritePayload(ctx, "", only{strings.NewReader("x")})
	}, same([]byte("x")))
	p.done(job)
	if job.Steps[0].Attempt != 2 {
		t.Errorf("it took %d attempts, want 2", job.Steps[0].Attempt)
	}
}

// 100 MB go through the agent and the engine by pieces: neither ever has more than a few of them in memory.
func TestAHundredMegabytesGoThroughSomeKilobytes(t *testing.T) {
	hash := sha256.New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := newPrinting(t)
	p.done(p.print(write(func() io.Reader { return only{io.LimitReader(nulls{}, makegood.MaxLargePayloadBytes)} }), func(ctx context.Context, ref makegood.Payload) (any, error) {
		r, err := agent.OpenPayload(ctx, ref)
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(hash, r)
		return n, errors.Join(err, r.Close())
	}))
	runtime.ReadMemStats(&after)
	// All that was ever allocated, and not what was there at once.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
		t.Errorf("%d MB were allocated, for 100 MB there and back", grown>>20)
	} else {
		t.Logf("%d KB were allocated, for 100 MB there and back", grown>>10)
	}
}
