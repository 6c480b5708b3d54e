//go:build kits

package kits_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	actual "github.com/makegood-dev/makegood/engine"
)

// pressed is a workflow of the suite's agent: what it writes in one step it reads in the next.
const pressed = `
name: pressed
steps:
  - {name: press, agent: probe, timeout: 1m, with: {from: file, bytes: 5000000, type: text/plain}}
  - {name: inspect, agent: probe, timeout: 1m, with: {report: "${ .steps.press.output.report }"}}
  - {name: large, agent: probe, timeout: 1m, with: {bytes: 300000}}
  - {name: echo, agent: probe, timeout: 1m, with: "${ .steps.large.output }"}
`

// An engine as it is, with its files, its routes and its token, carries the payloads of each kit.
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
			if err != nil || job.ProcessState != makegood.Processed {
				t.Fatalf("got %s, %+v, %v", job.ProcessState, job.Steps, err)
			}
			var got any
			if err := json.Unmarshal(job.Steps[1].Output, &got); err != nil {
				t.Fatal(err)
			}
			wants(t, got, message{"bytes": 5e6, "sha256": hashOf(lines(5e6))})
			// What was read from one payload and said again is the same bytes, and so the same reference.
			wants(t, string(job.Steps[3].Output), string(job.Steps[2].Output))
			if ref, whole := makegood.WholePayload(job.Steps[2].Output); !whole || ref.Bytes != 300_002 {
				t.Errorf("got %.100s, want a payload", job.Steps[2].Output)
			}
		})
	}
}
