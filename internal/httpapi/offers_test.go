package httpapi_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// What is refused is refused in the words that were said before anybody asked; what is offered is granted.
func TestWhatIsOfferedIsWhatAskingBrings(t *testing.T) {
	w := newWorld(t)
	w.submit("stop", "failed", `{"reserve":"fail"}`)
	w.submit("order", "held", `{"reserve":"hold"}`)
	w.submit("order", "done", `{}`)
	w.until("failed", in(makegood.JobError))
	w.until("done", in(makegood.JobProcessed))
	w.until("held", func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepClaimed })
	refused := 0
	for _, id := range []string{"failed", "held", "done"} {
		offers, err := w.client.Offers(t.Context(), id)
		check(t, err)
		if got, want := len(offers.Verbs), len(domain.Verbs())+1; got != want {
			t.Errorf("job %s: got %d offers, want %d: one a verb, and wake", id, got, want)
		}
		for _, verb := range domain.Verbs() {
			if o, _ := domain.OfferOf(offers, string(verb)); o.Effect == limits.OfferRefused && verb != makegood.VerbReschedule && verb != makegood.VerbEdit {
				refused++
				_, err := w.client.Request(t.Context(), id, api.Request{Verb: verb})
				wantRefused(t, err, o.Reason)
			}
		}
	}
	if refused < 4 {
		t.Errorf("%d verbs were refused, want some", refused)
	}

	offers, err := w.client.Offers(t.Context(), "held")
	check(t, err)
	reserve, _ := domain.OffersOfStep(offers, "reserve", false)
	settle, ok := domain.StepOffer(reserve, domain.AskSettleDone)
	if !ok || settle.Granted() {
		t.Fatalf("somebody holds the attempt of reserve, and %+v is offered", reserve)
	}
	_, err = w.client.Settle(t.Context(), "held", api.StepRef{Step: "reserve"}, api.SettleOptions{})
	wantRefused(t, err, settle.Reason)

	offers, err = w.client.Offers(t.Context(), "failed")
	check(t, err)
	if resubmit, _ := domain.OfferOf(offers, string(makegood.VerbResubmit)); resubmit.Effect != "goes on from what failed, forwards" {
		t.Errorf("a job in Error: got %+v, want what the table of verbs says", resubmit)
	}
	reserve, _ = domain.OffersOfStep(offers, "reserve", false)
	if settle, _ := domain.StepOffer(reserve, domain.AskSettleSkipped); !settle.Granted() {
		t.Errorf("what has failed can be settled, and %+v is offered", settle)
	}
	_, err = w.client.Settle(t.Context(), "failed", api.StepRef{Step: "reserve"}, api.SettleOptions{Skipped: true, Reason: "by hand"})
	check(t, err)
}

// An approval says what it asks and which answers it takes, and which it would refuse.
func TestAnOfferHasTheQuestionOfAnApproval(t *testing.T) {
	w := newWorld(t)
	w.submit("sign", "s-1", `{}`)
	w.until("s-1", func(j makegood.Job) bool { return j.Steps[0].State == makegood.StepWaiting })
	offers, err := w.client.Offers(t.Context(), "s-1")
	check(t, err)
	sign, ok := domain.OffersOfStep(offers, "sign", false)
	if !ok || sign.Question != "Sign s-1?" || !slices.Equal(sign.Choices, []string{"yes", "no"}) {
		t.Fatalf("got %+v, want the question and its answers", sign)
	}
	if answer, _ := domain.StepOffer(sign, domain.AskComplete); !answer.Granted() {
		t.Errorf("it waits, and %+v is offered", answer)
	}
	_, err = w.client.Complete(t.Context(), "s-1", api.StepRef{Step: "sign"}, []byte(`"yes"`))
	check(t, err)
	w.until("s-1", in(makegood.JobProcessed))
	offers, err = w.client.Offers(t.Context(), "s-1")
	check(t, err)
	if sign, ok := domain.OffersOfStep(offers, "sign", false); ok {
		t.Errorf("of a step that is done nothing may be asked: %+v", sign)
	}
}

// wantRefused wants a refusal with a reason.
func wantRefused(t *testing.T, err error, reason string) {
	t.Helper()
	var refused *api.RefusedError
	if !errors.As(err, &refused) || refused.Reason != reason {
		t.Errorf("got %v, want it refused: %s", err, reason)
	}
}

// offering are the conversations about what may be asked of a job, and about how many there are.
func offering() []conversation {
	const route = "/api/jobs/{id}/verbs"
	return []conversation{
		{"GET", "/api/totals", "/api/totals", "", "", 200},
		{"GET", route, "/api/jobs/failed/verbs", "", "", 200},
		{"GET", "/api/jobs/{id}/inputs", "/api/jobs/failed/inputs", "", "", 200},
		{"GET", "/api/jobs/{id}/inputs", "/api/jobs/failed/inputs?step=reserve", "", "", 200},
		{"GET", "/api/jobs/{id}/inputs", "/api/jobs/failed/inputs?step=nothing", "", "", 404},
		{"GET", "/api/jobs/{id}/inputs", "/api/jobs/failed/inputs?step=No%20step", "", "", 400},
		{"GET", "/api/jobs/{id}/inputs", "/api/jobs/nobody/inputs", "", "", 404},
		{"GET", route, "/api/jobs/held/verbs", "", "", 200},
		{"GET", route, "/api/jobs/done/verbs?of=all", "", "", 400},
		{"GET", route, "/api/jobs/nobody/verbs", "", "", 404},
	}
}

// Totals fails as everything of such a store does.
func (b broken) Totals(context.Context) (map[makegood.ProcessState]int, error) { return nil, b.err }
