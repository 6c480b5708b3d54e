package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// waits reports whether the first step of a job waits.
func waits(j makegood.Job) bool { return j.Steps[0].State == makegood.StepWaiting }

// The first answer wins, the same again is the same, in another spelling too, and another is told what stands. Who is
// known by the door is kept; of whoever holds a token it is kept that they did.
func TestTheFirstAnswerWins(t *testing.T) {
	w := newWorld(t)
	w.submit("send", "s", `{"send":"wait"}`)
	w.until("s", waits)
	j, err := w.client.Complete(t.Context(), "s", api.StepRef{Step: "send"}, []byte(`{"b":1, "a":2}`))
	check(t, err)
	if s := j.Steps[0]; j.ProcessState != makegood.JobProcessed || s.State != makegood.StepDone || s.CompletedBy == nil || *s.CompletedBy != "local" {
		t.Errorf("got %s and %+v, want it done by local", j.ProcessState, s)
	}
	if _, err := w.client.Complete(t.Context(), "s", api.StepRef{Step: "send"}, []byte(`{"a":2,"b":1}`)); err != nil {
		t.Errorf("the same again: got %v, want that it is the same", err)
	}
	_, err = w.client.Complete(t.Context(), "s", api.StepRef{Step: "send"}, []byte(`3`))
	refused := new(api.RefusedError)
	if !errors.As(err, &refused) || refused.Job != "s" || !strings.Contains(refused.Reason, "step send was completed by local at ") {
		t.Errorf("another answer: got %v, want it refused with what stands", err)
	}
	holder := w.client.Completion(w.token("s", "send", false))
	if s, err := holder.Complete(t.Context(), []byte(`{"a":2,"b":1}`)); err != nil || !s.Existed || s.State != makegood.StepDone {
		t.Errorf("the same by token: got %+v, %v, want that it is the same", s, err)
	}
	_, err = holder.Fail(t.Context(), makegood.StepError{Message: "no"})
	if !errors.As(err, &refused) || strings.Contains(err.Error(), "local") || refused.Job != "" || !strings.Contains(refused.Reason, "step send was completed at ") {
		t.Errorf("another by token: got %v, want what stands, and nothing of who said it", err)
	}
}

// Whoever holds a token completes, fails or extends, and is told how the step stands and nothing else.
func TestWhoeverHoldsATokenIsToldOfTheStepAlone(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "a", `{}`)
	w.until("a", waits)
	holder := w.client.Completion(w.token("a", "sign", false))
	until := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	s, err := holder.Heartbeat(t.Context(), until)
	if err != nil || s.State != makegood.StepWaiting || s.CompleteBy == nil || !s.CompleteBy.Equal(until) || s.Existed {
		t.Errorf("heartbeat: got %+v, %v, want it to wait until %s", s, err, until)
	}
	if s, err = holder.Heartbeat(t.Context(), until.Add(-time.Hour)); err != nil || !s.Existed || !s.CompleteBy.Equal(until) {
		t.Errorf("a heartbeat back: got %+v, %v, want nothing moved", s, err)
	}
	refused := new(api.RefusedError)
	if _, err = holder.Complete(t.Context(), []byte(`"perhaps"`)); !errors.As(err, &refused) || !strings.Contains(refused.Reason, `one of these answers, a text: "yes", "no"`) {
		t.Errorf("an answer that is none: got %v, want the choices", err)
	}
	if s, err = holder.Complete(t.Context(), []byte(`"yes"`)); err != nil || s.State != makegood.StepDone || s.CompleteBy != nil {
		t.Errorf("complete: got %+v, %v, want it done", s, err)
	}
	j := w.until("a", in(makegood.JobProcessed))
	if by := j.Steps[0].CompletedBy; by == nil || *by != "completion token" {
		t.Errorf("completed by %v, want completion token", by)
	}
	r := ask(t, http.MethodPost, w.url+"/api/completions/complete", `{"completion":"`+w.token("a", "sign", false)+`","output":"yes"}`)
	if got := string(r.body); got != `{"state":"done","completeBy":null,"existed":true}`+"\n" {
		t.Errorf("got %s, want the state alone", got)
	}
}

// What is made up is answered as what is of a job that is not there: whoever tries learns of no job, no step, no round.
func TestATokenThatIsMadeUpSaysNothingOfAnyJob(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "there", `{}`)
	w.submit("order", "other", `{"charge":"hold"}`)
	genuine := w.token("there", "sign", false)
	code := genuine[strings.LastIndexByte(genuine, '.')+1:]
	made := func(id string, p job.Place) string { return job.WriteCompletionToken(id, p, code) }
	var answers []string
	for _, token := range []string{
		made("nobody", job.Place{Step: "sign", Round: 1}),
		made("there", job.Place{Step: "sign", Round: 2}),
		made("there", job.Place{Step: "sign", Round: 1, Undo: true}),
		made("there", job.Place{Step: "nosuch", Round: 1}),
		made("other", job.Place{Step: "charge", Round: 1}),
		genuine[:len(genuine)-1], genuine + "A", w.token("other", "charge", false)[:20] + genuine[20:],
	} {
		for _, verb := range []string{"complete", "fail", "heartbeat"} {
			body := map[string]string{"fail": `,"error":{"message":"x"}`}[verb]
			r := ask(t, http.MethodPost, w.url+"/api/completions/"+verb, `{"completion":"`+token+`"`+body+`}`)
			if r.status == http.StatusBadRequest && strings.Contains(string(r.body), "this is no completion token") {
				continue // It cannot even be read, whatever jobs there are.
			}
			if r.status != http.StatusNotFound {
				t.Errorf("%s under %s: got %d %s, want 404", verb, token, r.status, r.body)
			}
			answers = append(answers, string(r.body))
		}
	}
	for _, a := range answers {
		if a != answers[0] || len(answers) < 12 {
			t.Errorf("got %s and %s of %d answers, want one for all", a, answers[0], len(answers))
		}
	}
	if _, err := w.client.Completion(made("nobody", job.Place{Step: "sign", Round: 1})).Complete(t.Context(), nil); !errors.Is(err, api.ErrCompletionToken) {
		t.Errorf("got %v, want ErrCompletionToken", err)
	}
	later := ask(t, http.MethodPost, w.url+"/api/completions/complete", `{"completion":"c3`+strings.TrimPrefix(genuine, "c1")+`"}`)
	if later.status != http.StatusServiceUnavailable || later.header.Get("Retry-After") != "60" {
		t.Errorf("a token of a later scheme: got %d %s, want to be asked to come again", later.status, later.body)
	}
	for _, secret := range []string{genuine, code} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// By its address a step is completed while it waits. What comes before is refused, or kept if that is asked for.
func TestAnEarlyAnswerIsKeptWhereThatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "o", `{"reserve":"hold"}`)
	w.until("o", func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepClaimed })
	at := api.StepRef{Step: "charge"}
	refused := new(api.RefusedError)
	if _, err := w.client.Complete(t.Context(), "o", at, nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "does not wait yet") {
		t.Errorf("got %v, want that it does not wait yet", err)
	}
	at.Early = true
	if _, err := w.client.Complete(t.Context(), "o", at, []byte(`1`)); err != nil {
		t.Errorf("kept: got %v", err)
	}
	if _, err := w.client.Complete(t.Context(), "o", api.StepRef{Step: "reserve", Round: 2, Early: true}, nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "round 2") {
		t.Errorf("another round: got %v, want it refused", err)
	}
	if _, err := w.client.Complete(t.Context(), "o", api.StepRef{Step: "nosuch"}, nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "there is no step nosuch") {
		t.Errorf("no step: got %v, want it refused", err)
	}
}

// A failure is tried again where it says so, and else the step has failed.
func TestAFailureFromOutsideIsAnAgentsFailure(t *testing.T) {
	w := newWorld(t)
	w.submit("send", "again", `{"send":"wait"}`)
	w.submit("send", "final", `{"send":"wait"}`)
	w.until("again", waits)
	w.until("final", waits)
	j, err := w.client.Fail(t.Context(), "again", api.StepRef{Step: "send"}, makegood.StepError{Message: "busy", Kind: "busy", Retryable: true, Applied: makegood.AppliedNo})
	check(t, err)
	if s := j.Steps[0]; s.State != makegood.StepBackoff || s.Error == nil || *s.Error != (makegood.StepError{Message: "busy", Kind: "busy", Retryable: true, Applied: makegood.AppliedNo}) {
		t.Errorf("got %+v, want it tried again", s)
	}
	s, err := w.client.Completion(w.token("final", "send", false)).Fail(t.Context(), makegood.StepError{Message: "lost"})
	if err != nil || s.State != makegood.StepFailed {
		t.Errorf("got %+v, %v, want it failed", s, err)
	}
	w.until("final", in(makegood.JobUndone))
}

func TestWhatIsSaidOfAStepIsReadStrictly(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "j", `{}`)
	w.until("j", waits)
	long := strings.Repeat("x", limits.MaxReasonBytes+1)
	for _, c := range []struct{ verb, body, want string }{
		{"complete", `{"output":"yes","early":"please"}`, `early is "please": want keep, or no value`},
		{"complete", `{"output":"yes","round":-1}`, "round is -1: want 1 or more"},
		{"complete", `{"output":"yes","request":"a b"}`, "request: want"},
		{"complete", `{"output":"yes","by":"me"}`, `there is no field "by"; there are output, undo, round, early, why, request`},
		{"fail", `{}`, "error.message is missing"},
		{"fail", `{"error":"x"}`, "error must be one JSON object"},
		{"fail", `{"error":{"message":"m","why":1}}`, `there is no field "error.why"; there are message, kind, retryable, applied`},
		{"fail", `{"error":{"message":1}}`, "error.message: want a string"},
		{"fail", `{"error":{"message":"` + long + `"}}`, "error.message has 1025 bytes, the limit is 1024"},
		{"fail", `{"error":{"message":"m","applied":"yes"}}`, `error.applied is "yes": want unknown or no`},
		{"fail", `{"error":{"message":"m","kind":"No Kind"}}`, "error.kind: "},
		{"heartbeat", `{"deadline":"tomorrow"}`, "deadline: want a time as in RFC 3339"},
	} {
		r := ask(t, http.MethodPost, w.url+"/api/jobs/j/steps/sign/"+c.verb, c.body)
		if r.status != http.StatusBadRequest || !strings.Contains(r.problem(t).Error, c.want) {
			t.Errorf("%s %.60s: got %d %s, want 400 and %q", c.verb, c.body, r.status, r.body, c.want)
		}
	}
	r := ask(t, http.MethodPost, w.url+"/api/jobs/j/steps/Sign/complete", `{}`)
	if r.status != http.StatusBadRequest || !strings.Contains(r.problem(t).Error, "step: ") {
		t.Errorf("a name of no step: got %d %s, want 400", r.status, r.body)
	}
	large := `"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"`
	r = ask(t, http.MethodPost, w.url+"/api/jobs/j/steps/sign/complete", `{"output":`+large+`}`)
	if want := "output has 262146 bytes, the limit is 262144"; r.status != http.StatusRequestEntityTooLarge || r.problem(t).Error != want {
		t.Errorf("got %d %s, want 413 and %s", r.status, r.body, want)
	}
}

// A step that has not begun is settled as done, with an output that is too large for the hot item; whoever the door knows is
// kept with it. Whatever is missing or too much is said, and changes nothing.
func TestAPersonSettlesAStep(t *testing.T) {
	w := newWorld(t)
	w.submit("order", "o", `{"reserve":"hold"}`)
	w.until("o", func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepClaimed })
	large := []byte(`"` + strings.Repeat("x", limits.MaxInlineBytes) + `"`)
	at := api.StepRef{Step: "charge"}
	invalid, refused := new(api.InvalidError), new(api.RefusedError)
	for what, s := range map[string]api.SettleOptions{
		"reason is missing":      {Skipped: true},
		"that is settled as":     {Skipped: true, Reason: "no", Output: []byte(`1`)},
		"how it is known that":   {NotDone: true},
		"as done has one":        {NotDone: true, Reason: "no", Output: []byte(`1`)},
		"want one":               {NotDone: true, Skipped: true, Reason: "no"},
		"the limit is 1024":      {Reason: strings.Repeat("x", limits.MaxReasonBytes+1)},
		"is not JSON as it must": {Output: []byte(`{"a":1,"a":2}`)},
		"output has 262146":      {Output: []byte(`"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"`)},
	} {
		if _, err := w.client.Settle(t.Context(), "o", at, s); !errors.As(err, &invalid) || !strings.Contains(invalid.Message, what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := w.client.Settle(t.Context(), "o", api.StepRef{Step: "reserve", Undo: true}, api.SettleOptions{NotDone: true, Reason: "no"}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "and not as not done") {
		t.Errorf("an undo: got %v, want it refused", err)
	}
	if r := ask(t, "POST", w.url+"/api/jobs/o/steps/charge/settle", `{"as":"failed"}`); r.status != http.StatusBadRequest || !strings.Contains(r.problem(t).Error, "as is") {
		t.Errorf("got %d %s, want what is wrong with as", r.status, r.body)
	}
	if _, err := w.client.Settle(t.Context(), "o", api.StepRef{Step: "reserve"}, api.SettleOptions{}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "attempt 1 of step reserve is held by ") {
		t.Errorf("got %v, want who holds the attempt", err)
	}
	if _, err := w.client.Settle(t.Context(), "gone", at, api.SettleOptions{}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want that there is no such job", err)
	}
	_, err := w.client.Settle(t.Context(), "o", at, api.SettleOptions{Output: large, Reason: "by hand"})
	check(t, err)
	j, err := w.client.Get(t.Context(), "o")
	check(t, err)
	s := j.Steps[1]
	if s.State != makegood.StepDone || s.Attempt != 0 || string(s.Output) != string(large) || s.Settled == nil || s.Settled.Reason != "by hand" || s.Settled.By == nil || *s.Settled.By != "local" {
		t.Errorf("got %+v, want it settled as done by local", s)
	}
}
