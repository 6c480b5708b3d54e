package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// A question waits for a person: it is counted in the badge and stands in the inbox, first on the page of its job, and what waits for
// the same answer is answered at once, after a dry run.
func TestQuestionsAreFirst(t *testing.T) {
	w := newWorld(t)
	w.voyage("v-1", `{}`, signs)
	w.voyage("v-2", `{}`, signs)
	job := w.get("jobs/v-1")
	job.wants(t, "Does v-1 sail?", "Step sign of voyage v-1 asks", "Without an answer the step has failed then.")
	if question, reason := strings.Index(string(job.text), "Does v-1 sail?"), strings.Index(string(job.text), `id="job-why"`); question > reason {
		t.Errorf("the question stands at %d, behind the reason at %d", question, reason)
	}
	w.get("errors").wants(t, "voyage · sign asks", "answers: go, stay", "See 2 jobs", "wait for a person")
	query := "ask=answer&answer=go&at=sign&state=waiting&step=sign&workflow=voyage"
	dry := w.get("repair?" + query)
	dry.wants(t, "Answer &#34;go&#34; to 2 jobs?", "No job has changed")
	refused := w.get("repair?" + strings.Replace(query, "answer=go", "answer=fly", 1))
	refused.wants(t, "the answers that it takes are go, stay")
	form, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"name", "seen"} {
		found := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(string(dry.text))
		if found == nil {
			t.Fatalf("the dry run has no field %s", name)
		}
		form.Set(name, found[1])
	}
	form.Set("reason", "the sea is calm")
	if begun := w.post("repairs", form); begun.status != http.StatusOK {
		t.Fatalf("got %d, want it to begin", begun.status)
	}
	for _, id := range []string{"v-1", "v-2"} {
		w.until(id, in(makegood.JobProcessed))
		j, err := w.Look(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range j.Steps {
			if s.Name == "sign" && (s.CompletedWhy == nil || *s.CompletedWhy != "the sea is calm") {
				t.Errorf("%s: why is %v, want what was said", id, s.CompletedWhy)
			}
		}
	}
}
