// Command large-report makes a report of 20 MB from a small order, by reference: one step renders it, the next reads
// it and checks it. Two orders are submitted, and the second is for more pages than it gets, so that its report is
// undone.
//
//	go run ./examples/large-report
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

const (
	pages     = 20
	pageBytes = 1 << 20
)

var workflows = fstest.MapFS{"report.yaml": {Data: []byte(`
name: report
onFailure: undo
steps:
  - name: render
    agent: press
    with: { title: "${ .input.title }" }
    undo: { action: shred }
  - name: check
    agent: press
    with: { report: "${ .steps.render.output.report }", pages: "${ .input.pages }" }
    undo: none
`)}}

// order is the input of the first step, rendered its output: the report by reference, and the facts for decisions.
type order struct {
	Title string `json:"title"`
}

type rendered struct {
	Report makegood.Payload `json:"report"`
	Pages  int              `json:"pages"`
}

// wanted is what the second step is asked for.
type wanted struct {
	Report makegood.Payload `json:"report"`
	Pages  int              `json:"pages"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// press is the agent that renders, checks and shreds reports.
func press(out io.Writer) *agent.Agent {
	return agent.New("press",
		agent.Do("render", func(ctx context.Context, in order) (rendered, error) {
			// Any reader will do: no more than a little of the report is in memory.
			report, err := agent.WritePayload(ctx, "text/plain", &book{title: in.Title})
			return rendered{Report: report, Pages: pages}, err
		}).Undo("shred", func(ctx context.Context, _ order, done *rendered) error {
			fmt.Fprintf(out, "%s  shredded %v\n", agent.TaskOf(ctx).Job, done.Report)
			return nil
		}),
		agent.Do("check", func(ctx context.Context, in wanted) (int, error) {
			r, err := agent.OpenPayload(ctx, in.Report)
			if err != nil {
				return 0, err
			}
			defer r.Close()
			// To the end: only that says that all is as it was written.
			read, err := io.Copy(io.Discard, r)
			if err != nil {
				return 0, err
			}
			if got := int(read / pageBytes); got != in.Pages {
				return 0, agent.Final(fmt.Errorf("the report has %d pages, and %d are wanted", got, in.Pages))
			}
			return in.Pages, nil
		}))
}

// run submits two orders, and prints their ends.
func run(ctx context.Context, out io.Writer, dir string) error {
	eng, err := engine.Open(ctx, engine.Options{Dir: dir, Workflows: workflows, Agents: []agent.Handler{press(out)}})
	if err != nil {
		return err
	}
	defer eng.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = eng.Run(running) }() // Close says why it could not go on.
	for id, want := range map[string]int{"good": pages, "short": pages + 1} {
		input, err := json.Marshal(map[string]any{"title": "The report " + id, "pages": want})
		if err != nil {
			return err
		}
		if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "report", ID: id, Input: input}); err != nil {
			return err
		}
		job, err := eng.Wait(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %s  %s\n", id, job.ProcessState, job.Steps[0].Output)
	}
	return nil
}

// book gives the pages of a report, one after the other, as what renders one would.
type book struct {
	title string
	page  int
	rest  []byte
}

func (b *book) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.page == pages {
			return 0, io.EOF
		}
		b.page++
		line := fmt.Appendf(nil, "%s, page %d\n", b.title, b.page)
		b.rest = bytes.Repeat(line, pageBytes/len(line)+1)[:pageBytes]
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
