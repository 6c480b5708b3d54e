package page_test

import (
	"strings"
	"testing"
)

func TestTheFirstViewSaysWhatNeedsAPersonBeforeAllElse(t *testing.T) {
	w := newWorld(t)
	w.get("").wants(t, "Nothing waits for a person")
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	w.get("").wants(t, "1 job waits for a person", `id="job-t-1"`, `id="job-t-2"`, "the card was declined")
}

func TestJobsAreFoundByWordsAndByParameters(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	for path, found := range map[string][2]bool{
		"?state=Error":                   {false, true},
		"?q=state:error":                 {false, true},
		"?q=workflow:trip":               {true, true},
		"?workflow=trip&state=Processed": {true, false},
		"?q=since:1h+state:processed":    {true, false},
		"?until=1h":                      {false, false},
		"?q=nobody":                      {true, true},
	} {
		got := w.get(path)
		for i, id := range []string{"t-1", "t-2"} {
			if has := strings.Contains(got.text, `id="job-`+id+`"`); has != found[i] {
				t.Errorf("%q: got %v for %s, want %v", path, has, id, found[i])
			}
		}
	}
	w.get("?q=nobody").wants(t, "There is no job <code>nobody</code>")
}

func TestAnIDLeadsToItsJob(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	if got := w.get("?q=t-1").at.Path; got != "/makegood/jobs/t-1" {
		t.Errorf("got %s, want /makegood/jobs/t-1", got)
	}
}
