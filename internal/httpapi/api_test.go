package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/machine"
)

// A thousand callers submit the same job at once: one of them made it, the others were told of it, and
// its steps ran once.
func TestAThousandEqualSubmissionsAreOneJob(t *testing.T) {
	const callers = 1000
	w := newWorld(t)
	var mu sync.Mutex
	got := map[int]int{}
	start := make(chan struct{})
	transport := &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for i := range callers {
		// The same value, in another spelling.
		body := fmt.Sprintf(`{"workflow":"order","id":"one","input":{"a":1,%s"b":"x"}}`, strings.Repeat(" ", i%7))
		all.Go(func() {
			<-start
			answer, err := c.Post(w.url+"/api/jobs", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			got[answer.StatusCode]++
		})
	}
	close(start)
	all.Wait()
	if got[201] != 1 || got[200] != callers-1 {
		t.Errorf("got %v, want one 201 and %d times 200", got, callers-1)
	}
	w.until("one", in(makegood.JobProcessed))
	if reserve, charge := w.actor.count("reserve"), w.actor.count("charge"); reserve != 1 || charge != 1 {
		t.Errorf("got %d and %d attempts, want one of each step", reserve, charge)
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for body, want := range map[string]string{
		``:                                     "workflow is missing",
		`null`:                                 "the body must be one JSON object",
		`[]`:                                   "the body must be one JSON object",
		`{"workflow":"order"}`:                 "input is missing; null is an input",
		`{"workflow":"order","input":1,"x":1}`: `there is no field "x"; there are workflow, id, input, startAt, replyTo`,
		`{"Workflow":"order","input":1}`:       `there is no field "Workflow"`,
		`{"workflow":"order","input":1,"workflow":"stop"}`:                         `the key "workflow" twice in one object (byte 31)`,
		`{"workflow":"order","input":{"a":1,"a":2}}`:                               `the key "a" twice in one object`,
		`{"workflow":"order","input":1} {}`:                                        "more text follows the value",
		`{"workflow":"order","input":` + deep + `}`:                                "nested deeper than 500",
		`{"workflow":"order","input":"` + "\xff" + `"}`:                            "not UTF-8",
		`{"workflow":7,"input":1}`:                                                 "workflow: want a string",
		`{"workflow":"order","input":1,"startAt":"tomorrow"}`:                      "startAt: want a time as in RFC 3339",
		`{"workflow":"order","input":1,"startAt":"2999-01-01T00:00:00Z","id":"x"}`: "the limit is 8760h0m0s",
		`{"workflow":"order","input":1,"id":"a b"}`:                                `the id "a b"`,
		`{"workflow":"order","input":1,"id":".."}`:                                 "cannot be a job's id",
		`{"workflow":"order","input":1,"replyTo":"nobody"}`:                        `replyTo "nobody"`,
		`{"workflow":"nobody","input":1}`:                                          `there is no workflow "nobody"; there are [lines order send sign stop voyage]`,
	} {
		r := ask(t, "POST", w.url+"/api/jobs", body)
		if r.status != 400 || !strings.Contains(r.problem(t).Error, want) {
			t.Errorf("%.80s: got %d %s, want 400 and %q", body, r.status, r.body, want)
		}
	}
	for body, want := range map[string]string{
		`{"request":"a b"}`: "request: want", `{"reason":"` + strings.Repeat("x", 1025) + `"}`: "reason has 1025 bytes, the limit is 1024",
	} {
		r := ask(t, "POST", w.url+"/api/jobs/x/cancel", body)
		if r.status != 400 || !strings.Contains(r.problem(t).Error, want) {
			t.Errorf("cancel %.80s: got %d %s, want 400 and %q", body, r.status, r.body, want)
		}
	}
	for query, want := range map[string]string{
		"?states=Error": `unknown parameter "states": did you mean "state"?`, "?stat=Error": `unknown parameter "stat": did you mean "state"?`,
		"?colour=red":    `unknown parameter "colour"; there are limit, cursor, detail, state, workflow, definition, paused, tenant, label, step, agent, reason-prefix, reason-kind, id-prefix, roots, words, since, until, late, late-within, due-within`,
		"?id-prefix=a/b": `id-prefix: "a/b" begins no job's id`, "?state=error": `there is no state "error"`,
		"?paused=no": "want true", "?paused=true&state=Error": "no state beside it",
		"?limit=0": "want 1 to 200", "?limit=201": "want 1 to 200", "?limit=ten": "want 1 to 200", "?limit=1&limit=2": "limit is there twice",
		"?cursor=x": "is of no page of this list", "?state=Error&cursor=5": "is of no page of this list", "?a=%zz": "the query cannot be read",
	} {
		r := ask(t, "GET", w.url+"/api/jobs"+query, "")
		if r.status != 400 || !strings.Contains(r.problem(t).Error, want) {
			t.Errorf("%s: got %d %s, want 400 and %q", query, r.status, r.body, want)
		}
	}
	if page := ask(t, "GET", w.url+"/api/jobs", ""); string(page.body) != `{"jobs":[],"cursor":"","scanned":false}`+"\n" {
		t.Errorf("after all refusals: got %s, want no job", page.body)
	}
}

func TestAnInputMayHaveItsLimitAndNoByteMore(t *testing.T) {
	w := newWorld(t)
	input := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	r := ask(t, "POST", w.url+"/api/jobs", `{"workflow":"order","id":"large","input":`+input(makegood.MaxPayloadBytes)+`}`)
	if r.status != 201 {
		t.Fatalf("at the limit: got %d %s, want 201", r.status, r.body)
	}
	r = ask(t, "POST", w.url+"/api/jobs", `{"workflow":"order","id":"larger","input":`+input(makegood.MaxPayloadBytes+1)+`}`)
	if want := "input has 262145 bytes, the limit is 262144"; r.status != 413 || r.problem(t).Error != want {
		t.Errorf("a byte more: got %d %s, want 413 and %q", r.status, r.body, want)
	}
	w.until("large", in(makegood.JobProcessed))
	job, err := w.client.Get(t.Context(), "large")
	check(t, err)
	if want := input(makegood.MaxPayloadBytes); string(job.Input) != want || string(job.Steps[1].Output) != want {
		t.Errorf("got an input of %d and an output of %d bytes, want %d", len(job.Input), len(job.Steps[1].Output), len(want))
	}
	look, err := w.client.Look(t.Context(), "large")
	check(t, err)
	if string(look.Input) != "null" || string(look.Steps[1].Output) != "null" {
		t.Errorf("without payloads: got an input of %d and an output of %d bytes, want null", len(look.Input), len(look.Steps[1].Output))
	}
}

// The same name of a request under another verb is another request, and one that was granted before is the same for ever.
func TestARequestIsNamedWithinItsVerb(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "j", `{"charge":"hold"}`)
	w.until("j", func(j makegood.Job) bool { return j.Steps[1].State == makegood.StepClaimed })
	for _, step := range []struct {
		verb   string
		paused bool
	}{{"pause", true}, {"pause", true}, {"resume", false}, {"pause", false}} {
		r := ask(t, "POST", w.url+"/api/jobs/j/"+step.verb, `{"request":"mine"}`)
		var job makegood.Job
		check(t, json.Unmarshal(r.body, &job))
		if r.status != 200 || job.Paused != step.paused {
			t.Errorf("%s: got %d and paused %v, want 200 and %v", step.verb, r.status, job.Paused, step.paused)
		}
	}
}

// For every verb in every state in which a job rests, the API gives what the table of verbs says.
func TestVerbsAreGrantedAndRefusedAsTheTableSays(t *testing.T) {
	w := newWorld(t)
	script := map[makegood.ProcessState]string{
		makegood.JobProcessed: `{}`, makegood.JobError: `{"reserve":"fail"}`, makegood.JobUndone: `{"charge":"deny"}`,
		makegood.JobCancelled: `{"reserve":"fail"}`, makegood.JobProcessing: `{"charge":"hold"}`,
	}
	for _, verb := range domain.Verbs() {
		for state, input := range script {
			id := fmt.Sprintf("%s-%s", verb, state)
			w.bring(id, state, input)
			rule := machine.RuleFor(verb, state)
			reason := rule.Reason
			if verb == makegood.VerbResume && state == makegood.JobProcessing {
				// The table speaks of paused jobs; this one is not.
				rule.Effect, reason = machine.Refuses, "it is not paused"
			}
			if verb == makegood.VerbReschedule && state == makegood.JobProcessing {
				rule.Effect, reason = machine.Refuses, "it has started"
			}
			if verb == makegood.VerbForward && state == makegood.JobError {
				// The table speaks of jobs whose undo stopped; this one goes forward.
				rule.Effect, reason = machine.Refuses, "it goes forward; resubmit goes on from what failed"
			}
			if verb == makegood.VerbRedrive && rule.Effect != machine.Refuses {
				// The table's row is for jobs with failed items of a map; this job has no map.
				rule.Effect, reason = machine.Refuses, "none of its maps that have ended has a failed item"
			}
			err := w.askFor(id, verb)
			if rule.Effect != machine.Refuses {
				if err != nil {
					t.Errorf("%s of a job in %s: got %v, want it granted: %s", verb, state, err, rule.Effect)
				}
				continue
			}
			refused, ok := asRefused(err)
			if !ok || refused.Reason != reason || refused.Job != id {
				t.Errorf("%s of a job in %s: got %v, want it refused: %s", verb, state, err, reason)
			}
		}
	}
}

// askFor asks for a verb, of which one needs a time.
func (w *world) askFor(id string, verb makegood.Verb) (err error) {
	if verb == makegood.VerbEdit {
		_, err = w.client.Request(w.t.Context(), id, api.Request{Verb: verb, Timeout: makegood.Hour})
		return err
	}
	if verb == makegood.VerbReschedule {
		_, err = w.client.Request(w.t.Context(), id, api.Request{Verb: makegood.VerbReschedule, StartAt: time.Now().Add(time.Hour)})
		return err
	}
	_, err = w.client.Request(w.t.Context(), id, api.Request{Verb: verb, Reason: "a test"})
	return err
}

func asRefused(err error) (*api.RefusedError, bool) {
	return errors.AsType[*api.RefusedError](err)
}

// bring makes a job that rests in a state.
func (w *world) bring(id string, state makegood.ProcessState, input string) {
	w.t.Helper()
	workflow := "order"
	if state == makegood.JobError || state == makegood.JobCancelled {
		workflow = "stop"
	}
	w.submit(workflow, id, input)
	if state == makegood.JobCancelled {
		w.until(id, in(makegood.JobError))
		_, err := w.client.Request(w.t.Context(), id, api.Request{Verb: makegood.VerbCancel})
		check(w.t, err)
	}
	w.until(id, in(state))
}

func TestAListIsInPagesWithoutPayloads(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 7 {
		id := fmt.Sprintf("j-%d", i)
		w.submit("order", id, `{"canary":"c4n4ry"}`)
		want = append([]string{id}, want...)
	}
	var got []string
	for cursor := ""; ; {
		r := ask(t, "GET", w.url+"/api/jobs?workflow=order&limit=3&cursor="+cursor, "")
		if strings.Contains(string(r.body), "c4n4ry") {
			t.Errorf("the list carries a payload: %s", r.body)
		}
		var page api.Page
		check(t, json.Unmarshal(r.body, &page))
		for _, j := range page.Jobs {
			got = append(got, j.ID)
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.bring("e", makegood.JobError, `{"reserve":"fail"}`)
	var inError []string
	for job, err := range w.client.List(t.Context(), api.Filter{State: makegood.JobError}) {
		check(t, err)
		inError = append(inError, job.ID+" "+string(job.ProcessState))
	}
	if fmt.Sprint(inError) != "[e Error]" {
		t.Errorf("jobs in Error: got %v, want e", inError)
	}
}

// Ids that the API makes are in the order of time, and of the alphabet that all ids have.
func TestAnIDIsMadeForAJobThatHasNone(t *testing.T) {
	w := newWorld(t)
	var last string
	for range 5 {
		r := ask(t, "POST", w.url+"/api/jobs", `{"workflow":"order","input":null}`)
		var job makegood.Job
		check(t, json.Unmarshal(r.body, &job))
		if r.status != 201 || len(job.ID) != 26 || r.header.Get("Location") != "/api/jobs/"+job.ID {
			t.Fatalf("got %d, id %q, Location %q", r.status, job.ID, r.header.Get("Location"))
		}
		if job.ID[:12] < last {
			t.Errorf("%s comes before %s", job.ID, last)
		}
		last = job.ID[:12]
	}
}

// Whatever is in a payload is in no log, at any level, whether all goes well or not.
func TestPayloadsAreNotLogged(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "good", `{"canary":"c4n4ry"}`)
	w.submit("order", "bad", `{"canary":"c4n4ry","charge":"fail"}`)
	ask(t, "POST", w.url+"/api/jobs", `{"workflow":"order","id":"good","input":"c4n4ry"}`)
	ask(t, "POST", w.url+"/api/jobs", `{"workflow":"order","id":"x","input":{"c4n4ry":1,"c4n4ry":2}}`)
	w.until("good", in(makegood.JobProcessed))
	w.until("bad", in(makegood.JobUndone))
	_, err := w.client.Get(t.Context(), "good")
	check(t, err)
	ask(t, "POST", w.url+"/api/jobs/good/cancel", `{"reason":"c4n4ry"}`)
	log := w.log.String()
	if strings.Contains(log, "c4n4ry") {
		t.Errorf("a payload was logged:\n%s", log)
	}
	if !strings.Contains(log, "verb=cancel") {
		t.Errorf("the log has not even the request for cancel:\n%s", log)
	}
}

func TestOnlyHostsThatAreOursAreServed(t *testing.T) {
	for _, test := range []struct {
		listen, host string
		want         int
	}{
		{"127.0.0.1", "localhost", 200},
		{"127.0.0.1", "LOCALHOST:80", 200},
		{"127.0.0.1", "127.0.0.7:4777", 200},
		{"127.0.0.1", "[::1]:4777", 200},
		{"127.0.0.1", "localhost.evil.example", 421},
		{"127.0.0.1", "127.0.0.1.evil.example:4777", 421},
		{"127.0.0.1", "10.0.0.1", 421},
		{"build.internal", "build.internal:4777", 200},
		{"build.internal", "evil.example", 421},
		{"0.0.0.0", "10.0.0.1:4777", 200},
		{"0.0.0.0", "evil.example", 421},
	} {
		url := listen(t, httpapi.Config{Jobs: control.New(broken{}.parts()), Host: test.listen, Logger: slog.New(slog.DiscardHandler)})
		if got := ask(t, "GET", url+"/api/workflows", "", "Host: "+test.host); got.status != test.want {
			t.Errorf("listening on %s, asked for %s: got %d, want %d", test.listen, test.host, got.status, test.want)
		}
	}
}

func TestWhatNoRouteAnswersIsAnsweredInJSON(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 404},
		{"GET", "/api", 404},
		{"DELETE", "/api/jobs/x", 405},
		{"PUT", "/api/jobs", 405},
		{"POST", "/api/jobs/x/explode", 404},
		{"GET", "/api/jobs/x/cancel", 405},
		{"OPTIONS", "/api/jobs", 405},
	} {
		r := ask(t, test.method, w.url+test.path, "")
		if r.status != test.status || r.problem(t).Error == "" {
			t.Errorf("%s %s: got %d %s, want %d and a problem", test.method, test.path, r.status, r.body, test.status)
		}
		for name := range r.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: got the header %s, want none that lets other origins in", test.method, test.path, name)
			}
		}
	}
}

// A job that is to start later is stored, and says when.
func TestAJobThatStartsLaterIsStoredNow(t *testing.T) {
	w := newWorld(t)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	job, err := w.client.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "later", StartAt: at})
	if err != nil || job.Existed || job.StartAt == nil || !job.StartAt.Equal(at) || job.ProcessState != makegood.JobPending {
		t.Errorf("existed %v: got %v, %v in %s, want it created in Pending, to start at %v", job.Existed, err, job.StartAt, job.ProcessState, at)
	}
}
