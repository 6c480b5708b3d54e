//go:build kits

package kits_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	actual "github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/domain"
)

// pressed is a workflow of the suite's agent: what it writes in one step it reads in the next.
const pressed = `
name: pressed
steps:
  - {name: press, agent: probe, timeout: 1m, with: {from: file, bytes: 5000000, type: text/plain}}
  - {name: inspect, agent: probe, timeout: 1m, with: {report: "${ .steps.press.output.report }"}}
  - {name: large, agent: probe, timeout: 1m, with: {bytes: 300000}}
  - {name: echo, agent: probe, timeout: 1m, with: "${ .steps.large.output }"}
  - {name: wide, agent: probe, action: large, timeout: 1m, with: {bytes: 131071, of: "é"}}
  - {name: slowed, agent: probe, action: slowDown, timeout: 1m, retry: {attempts: 1}, with: {message: "429", ms: 100, times: 2}}
`

// An engine as it is, with its files, its routes and its token, carries the payloads of each kit, and does not count the
// attempts that ask for a time without calls.
func TestARealEngineCarriesThePayloadsOfEachKit(t *testing.T) {
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			eng, err := actual.Open(t.Context(), actual.Options{
				Dir: t.TempDir(), Workflows: fstest.MapFS{"pressed.yaml": {Data: []byte(pressed)}}, Outside: []actual.Outside{{Name: "probe", Token: "s3cret"}},
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			ran := make(chan error, 1)
			go func() { ran <- eng.Run(ctx) }()
			server := httptest.NewServer(eng.AgentHandler())
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
				stop()
				if err := errors.Join(<-ran, eng.Close()); err != nil {
					t.Error(err)
				}
			})
			l.run(t, "MAKEGOOD_URL="+server.URL, "MAKEGOOD_TOKEN=s3cret")
			if _, err = eng.Submit(t.Context(), makegood.Submission{Workflow: "pressed", ID: "p-1", Input: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			job, err := eng.Wait(t.Context(), "p-1")
			if err != nil || job.ProcessState != makegood.JobProcessed {
				t.Fatalf("got %s, %+v, %v", job.ProcessState, job.Steps, err)
			}
			var got any
			if err := json.Unmarshal(job.Steps[1].Output, &got); err != nil {
				t.Fatal(err)
			}
			wants(t, got, message{"bytes": 5e6, "sha256": hashOf(lines(5e6))})
			// What was read from one payload and said again is the same bytes, and so the same reference.
			wants(t, string(job.Steps[3].Output), string(job.Steps[2].Output))
			if ref, whole := domain.WholePayload(job.Steps[2].Output); !whole || ref.Bytes != 300_002 {
				t.Errorf("got %.100s, want a payload", job.Steps[2].Output)
			}
			if got := len(job.Steps[4].Output); got != makegood.MaxPayloadBytes {
				t.Errorf("got %d bytes, want what fits as it is: %.100s", got, job.Steps[4].Output)
			}
			if s := job.Steps[5]; s.Attempt != 3 || string(s.Output) != `"taken"` {
				t.Errorf("got attempt %d with %s, want the third of a step that was granted one", s.Attempt, s.Output)
			}
		})
	}
}

// An engine that is away for a while when an agent begins to write costs no attempt, also where what is written can be read only once.
func TestAnEngineThatIsAwayCostsNoUpload(t *testing.T) {
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			e := newEngine(t)
			// What the agent reaches, in front of the engine.
			at := freeAddr(t)
			front, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: e.server.Config.Handler, ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(front) }()
			l.run(t, "MAKEGOOD_URL=http://"+at)
			e.give(task("away", "pressLater", message{"ms": 1500, "bytes": 1000}))
			e.until("it was given out", func() bool { return len(e.waiting) == 0 })
			time.Sleep(500 * time.Millisecond) // It has come, and works.
			_ = server.Close()
			time.Sleep(1500 * time.Millisecond) // It begins to write meanwhile.
			back, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			again := &http.Server{Handler: e.server.Config.Handler, ReadHeaderTimeout: time.Minute}
			go func() { _ = again.Serve(back) }()
			t.Cleanup(func() { _ = again.Close() })
			wants(t, e.answer("away")["output"], message{"report": referenceTo(lines(1000), "")})
		})
	}
}
