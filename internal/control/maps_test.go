package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// The last notice of the first map has no address, and the map tolerates it. Those of the second wait for another try.
const notices = `
name: notices
steps:
  - {name: write, map: {over: "${ .input }", tolerate: {items: 1}}, agent: post, retry: {attempts: 1}, undo: none}
  - {name: notes, map: {over: "${ [] }", outputs: manifest}, agent: workflow, action: note, when: "${ false }"}
  - {name: again, map: {over: "${ .input }"}, agent: post, action: write, with: abroad, retry: {attempts: 2, backoff: 1h, max: 1h}, undo: none}
`

// parts waits for the parts of a job's map, by their number of items, and returns them.
func parts(t *testing.T, j everything, of string, n int) (all []api.Listed) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(all) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d parts of %s are listed, want %d: %+v", len(all), of, n, all)
		}
		all = nil
		for l, err := range j.List(t.Context(), api.Filter{IDPrefix: of + "~"}) {
			must(t, err)
			all = append(all, l)
		}
	}
	return all
}

// A part of a map is a job that is listed, read, found by the agent of its items, audited and woken as any other,
// though its definition is not stored.
func TestThePartsOfAMapAreJobsAsAnyOther(t *testing.T) {
	for way, overHTTP := range map[string]bool{"in the process": false, "over HTTP": true} {
		t.Run(way, func(t *testing.T) {
			j, is := open(t, overHTTP).(interface {
				everything
				Audit(ctx context.Context) iter.Seq2[api.AuditPage, error]
			})
			if !is {
				t.Fatal("it has no audit")
			}
			compiled, err := workflowfile.Parse("notices.yaml", []byte(notices))
			must(t, err)
			_, err = j.Submit(t.Context(), makegood.Submission{Workflow: "note", ID: "other", Input: json.RawMessage(`"Ada"`)})
			must(t, err)
			to := strings.Repeat(`"Ada",`, 120) + `""`
			_, err = j.Submit(t.Context(), makegood.Submission{Workflow: "notices", ID: "many", Input: json.RawMessage("[" + to + "]")})
			must(t, err)
			for _, l := range parts(t, j, "many", 5) {
				part, err := j.Look(t.Context(), l.ID)
				must(t, err)
				d, err := j.Definition(t.Context(), part.Definition)
				if err != nil || d.Definition != part.Definition || d.Name != part.Workflow || len(d.Workflow.Steps) != len(part.Steps) {
					t.Errorf("the definition %s of %s, with %d steps: got %s of %s with %d steps: %v",
						part.Definition, part.ID, len(part.Steps), d.Definition, d.Name, len(d.Workflow.Steps), err)
				}
				if !strings.HasPrefix(part.Definition, compiled.Hash+"~") || !strings.Contains(d.Source, part.Workflow) {
					t.Errorf("%s has the definition %s and this source:\n%s", part.ID, part.Definition, d.Source)
				}
				for _, ask := range []func(context.Context, string) (makegood.Job, error){j.Get, j.Outline, j.Wake} {
					_, err := ask(t.Context(), part.ID)
					must(t, err)
				}
				_, err = j.Offers(t.Context(), part.ID)
				must(t, err)
				_, err = j.SentInputs(t.Context(), part.ID, "")
				must(t, err)
			}
			d, err := j.Definition(t.Context(), compiled.Hash)
			must(t, err)
			if again, err := workflowfile.Parse("source", []byte(d.Source)); err != nil || again.Hash != compiled.Hash {
				t.Errorf("the source of the whole is another definition: %v\n%s", err, d.Source)
			}
			found := 0
			for l, err := range j.List(t.Context(), api.Filter{Agent: "post", IDPrefix: "many"}) {
				must(t, err)
				if !strings.HasPrefix(l.Workflow, "notices~again") {
					t.Errorf("%s of %s waits for another try", l.ID, l.Workflow)
				}
				found++
			}
			if found != 1 {
				t.Errorf("%d parts are found by the agent of their items, want 1", found)
			}
			for l, err := range j.List(t.Context(), api.Filter{Workflow: "notices~write"}) {
				if must(t, err); l.Workflow != "notices~write" {
					t.Errorf("%s of %s is no part of the map", l.ID, l.Workflow)
				}
				found++
			}
			if found != 1+3 {
				t.Errorf("%d parts are found by the name of their workflow, want 3", found-1)
			}
			audited := 0
			for page, err := range j.Audit(t.Context()) {
				if must(t, err); len(page.Strays) > 0 {
					t.Errorf("got %+v", page.Strays)
				}
				audited += page.Audited
			}
			if audited < 7 {
				t.Errorf("%d jobs are audited, want 7: two that were submitted, and 5 parts", audited)
			}
			for _, of := range []string{"~write~5", "~none~5", "~write~0x5", "~write~-1", "~write~", "~write~1000000"} {
				_, err := j.Definition(t.Context(), compiled.Hash+of)
				if there := of == "~write~5"; there != (err == nil) || !there && !errors.Is(err, api.ErrNoDefinition) {
					t.Errorf("definition %s: %v", of, err)
				}
			}
		})
	}
}
