package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

const reportWorkflow = `
name: report
steps:
  - name: render
    agent: press
    with: { data: "${ .input.data }", pages: "${ .input.pages }" }
    undo: { action: shred }
  - name: check
    agent: press
    with: { report: "${ .steps.render.output.report }", wanted: "${ .input.wanted }", bytes: "${ .steps.render.output.bytes }" }
    retry: { attempts: 1 }
    undo: none
onFailure: undo
`

type toRender struct {
	Data  makegood.Payload `json:"data"`
	Pages int              `json:"pages"`
}

type rendered struct {
	Report makegood.Payload `json:"report"`
	Bytes  int64            `json:"bytes"`
}

// press renders data into a report of so many pages, checks reports, and shreds them.
func press(shredded *atomic.Value) agent.Handler {
	return agent.New("press",
		agent.Do("render", func(ctx context.Context, in toRender) (rendered, error) {
			data, err := agent.OpenPayload(ctx, in.Data)
			if err != nil {
				return rendered{}, err
			}
			defer data.Close()
			text, err := io.ReadAll(data)
			if err != nil {
				return rendered{}, err
			}
			var pages []io.Reader
			for range in.Pages {
				pages = append(pages, bytes.NewReader(text))
			}
			report, err := agent.WritePayload(ctx, "application/pdf", io.MultiReader(pages...))
			return rendered{report, report.Bytes}, err
		}).Undo("shred", func(ctx context.Context, _ toRender, done *rendered) error {
			shredded.Store(done.Report)
			return nil
		}),
		agent.Do("check", func(ctx context.Context, in struct {
			Report makegood.Payload `json:"report"`
			Wanted string           `json:"wanted"`
			Bytes  int64            `json:"bytes"`
		},
		) (bool, error) {
			report, err := agent.OpenPayload(ctx, in.Report)
			if err != nil {
				return false, err
			}
			defer report.Close()
			hash := sha256.New()
			if n, err := io.Copy(hash, report); err != nil || n != in.Bytes {
				return false, fmt.Errorf("read %d of %d bytes: %w", n, in.Bytes, err)
			}
			if got := hex.EncodeToString(hash.Sum(nil)); got != in.Wanted {
				return false, agent.Final(fmt.Errorf("the report is %s", got))
			}
			return true, nil
		}))
}

// openReports opens an engine with workflows and agents, lets it run, and returns a client of its HTTP API.
func openReports(t *testing.T, dir, workflow string, agents ...agent.Handler) (*engine.Engine, *client.Client) {
	t.Helper()
	eng, err := engine.Open(t.Context(), engine.Options{
		Dir: dir, Workflows: fstest.MapFS{"w.yaml": {Data: []byte(workflow)}}, Agents: agents,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	server := httptest.NewServer(eng.Handler())
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := errors.Join(<-done, eng.Close()); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return eng, c
}

// A report of 20 MB is made from data of 1 MB, checked, and undone where it is not what is wanted; all by reference.
func TestALargeReportIsMadeCheckedAndUndone(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	whole := sha256.Sum256(bytes.Repeat(data, 20))
	for _, c := range []struct {
		wanted string
		want   makegood.ProcessState
	}{{hex.EncodeToString(whole[:]), makegood.JobProcessed}, {"another", makegood.JobUndone}} {
		for name, dir := range map[string]string{"files": t.TempDir(), "memory": ""} {
			t.Run(name+" "+string(c.want), func(t *testing.T) {
				var shredded atomic.Value
				_, over := openReports(t, dir, reportWorkflow, press(&shredded))
				ref, err := over.WritePayload(t.Context(), "report-7", "text/plain", bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				input, err := json.Marshal(map[string]any{"data": ref, "pages": 20, "wanted": c.wanted})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := over.Submit(t.Context(), makegood.Submission{Workflow: "report", ID: "report-7", Input: input}); err != nil {
					t.Fatal(err)
				}
				job, err := over.Wait(t.Context(), "report-7")
				if err != nil || job.ProcessState != c.want {
					t.Fatalf("got %s (%s), %v, want %s", job.ProcessState, job.Reason, err, c.want)
				}
				var done rendered
				if err := json.Unmarshal(job.Steps[0].Output, &done); err != nil {
					t.Fatal(err)
				}
				want := makegood.Payload{SHA256: hex.EncodeToString(whole[:]), Bytes: 20 << 20, Type: "application/pdf", By: "press"}
				if done.Report != want {
					t.Errorf("got %+v, want %+v", done.Report, want)
				}
				if got := shredded.Load(); c.want == makegood.JobUndone && got != want {
					t.Errorf("the undo got %v, want %v", got, want)
				}
				r, err := over.OpenPayload(t.Context(), "report-7", want)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, r)
				if err := errors.Join(err, r.Close()); n != 20<<20 || err != nil {
					t.Errorf("downloaded %d bytes, %v", n, err)
				}
			})
		}
	}
}

const listWorkflow = `
name: list
steps:
  - name: gather
    agent: clerk
    undo: none
  - name: count
    agent: clerk
    with: "${ .steps.gather.output }"
    undo: none
`

// What is returned as a value and is too large for a message becomes a payload by itself, and comes back as a value where an
// action takes one.
func TestAnOutputThatIsTooLargeForAMessageGoesByReference(t *testing.T) {
	items := make([]string, 20_000)
	for i := range items {
		items[i] = fmt.Sprintf("item number %d <&>", i)
	}
	clerk := agent.New("clerk",
		agent.Do("gather", func(context.Context, struct{}) ([]string, error) { return items, nil }),
		agent.Do("count", func(_ context.Context, in []string) (int, error) { return len(in), nil }))
	eng, _ := openReports(t, t.TempDir(), listWorkflow, clerk)
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "list", ID: "l-1"}); err != nil {
		t.Fatal(err)
	}
	job, err := eng.Wait(t.Context(), "l-1")
	if err != nil || job.ProcessState != makegood.JobProcessed || string(job.Steps[1].Output) != "20000" {
		t.Fatalf("got %s (%s), %v, %+v", job.ProcessState, job.Reason, err, job.Steps)
	}
	p, whole := domain.WholePayload(job.Steps[0].Output)
	if !whole || p.By != "clerk" || p.Type != makegood.PayloadJSON || p.Bytes < makegood.MaxPayloadBytes {
		t.Errorf("the output is %.100s", job.Steps[0].Output)
	}
	r, err := eng.OpenPayload(t.Context(), "l-1", p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	if err := json.NewDecoder(r).Decode(&got); err != nil || len(got) != len(items) || got[19_999] != items[19_999] {
		t.Errorf("got %d items, %v", len(got), err)
	}
}

// A reference never dangles: what refers to bytes that are not there is refused at the door, and is the failure of a step.
func TestWhatRefersToNothingIsRefused(t *testing.T) {
	missing := makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10}
	liar := agent.New("clerk",
		agent.Do("gather", func(context.Context, struct{}) (makegood.Payload, error) { return missing, nil }),
		agent.Do("count", func(context.Context, []string) (int, error) { return 0, nil }))
	eng, over := openReports(t, t.TempDir(), strings.Replace(listWorkflow, "agent: clerk\n    undo", "agent: clerk\n    retry: { attempts: 1 }\n    undo", 1), liar)
	for name, jobs := range map[string]api.Jobs{"engine": eng, "over HTTP": over} {
		mine, err := jobs.(api.Payloads).WritePayload(t.Context(), "mine", "", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		longer := mine
		longer.Bytes = 2
		for what, input := range map[string]any{
			"not there": missing, "another job's": map[string]any{"a": mine}, "another length": longer, "no reference": map[string]any{limits.PayloadMark: 1},
		} {
			text, err := json.Marshal(input)
			if err != nil {
				t.Fatal(err)
			}
			id := "other"
			if what == "another length" {
				id = "mine"
			}
			var invalid *api.InvalidError
			if _, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "list", ID: id, Input: text}); !errors.As(err, &invalid) {
				t.Errorf("%s, %s: got %v, want it refused", name, what, err)
			}
		}
		if _, err := jobs.(api.Payloads).OpenPayload(t.Context(), "mine", missing); !errors.Is(err, api.ErrNoPayload) {
			t.Errorf("%s: got %v, want %v", name, err, api.ErrNoPayload)
		}
	}
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "list", ID: "lies"}); err != nil {
		t.Fatal(err)
	}
	job, err := eng.Wait(t.Context(), "lies")
	if err != nil || job.Steps[0].Error == nil || !strings.Contains(job.Steps[0].Error.Message, "that is not there for this job") {
		t.Errorf("got %s (%s), %+v, %v", job.ProcessState, job.Reason, job.Steps[0].Error, err)
	}
}

// What says that it is too large is refused before any of it was read.
func TestTooMuchIsRefusedUnread(t *testing.T) {
	eng, _ := openReports(t, "", listWorkflow, agent.New("clerk",
		agent.Do("gather", func(context.Context, struct{}) (int, error) { return 0, nil }),
		agent.Do("count", func(context.Context, []string) (int, error) { return 0, nil })))
	r := httptest.NewRequest(http.MethodPut, "http://127.0.0.1/api/jobs/j/payloads", unread{t})
	r.ContentLength = makegood.MaxLargePayloadBytes + 1
	answer := httptest.NewRecorder()
	eng.Handler().ServeHTTP(answer, r)
	if answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body.String(), "104857600 bytes") {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

// What was written and what refers to it are there for the next engine on the folder.
func TestPayloadsAreThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	var shredded atomic.Value
	var ref makegood.Payload
	t.Run("before", func(t *testing.T) {
		_, over := openReports(t, dir, reportWorkflow, press(&shredded))
		var err error
		if ref, err = over.WritePayload(t.Context(), "r", "", strings.NewReader("some data")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("after", func(t *testing.T) {
		eng, _ := openReports(t, dir, reportWorkflow, press(&shredded))
		input, err := json.Marshal(map[string]any{"data": ref, "pages": 1, "wanted": "1307990e6ba5ca145eb35e99182a9bec46531bc54ddf656a602c780fa0240dee"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "report", ID: "r", Input: input}); err != nil {
			t.Fatal(err)
		}
		if job, err := eng.Wait(ctx, "r"); err != nil || job.ProcessState != makegood.JobProcessed {
			t.Errorf("got %s (%s), %v", job.ProcessState, job.Reason, err)
		}
	})
}
