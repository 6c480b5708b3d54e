package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// example returns the workflow of docs/expressions.md that has a name.
func example(t *testing.T, name string) []byte {
	t.Helper()
	for _, block := range blocks(read(t, "docs/expressions.md"), "yaml") {
		if strings.HasPrefix(block, "name: "+name+"\n") {
			return []byte(block)
		}
	}
	t.Fatalf("docs/expressions.md has no workflow %s", name)
	return nil
}

// The message is sent with the token; without it nothing is sent, and the job says which secret it lacks.
func TestTheExampleOfASecretSendsIt(t *testing.T) {
	const token = "t0ken-of-chat"
	post := func(secrets map[string]string) (job makegoodtest.Job, sent []string) {
		job = makegoodtest.Run(t, makegoodtest.Case{
			YAML: example(t, "announce"), Input: map[string]string{"team": "a", "text": "hello"},
			Services: func() makegoodtest.Services {
				return makegoodtest.Services{Secrets: secrets, HTTP: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					sent = append(sent, fmt.Sprintf("%s %s", r.Header.Get("Authorization"), body))
				})}
			},
		})
		return job, sent
	}
	job, sent := post(map[string]string{"chat_token": token})
	if want := `Bearer ` + token + ` {"text":"hello"}`; job.ProcessState != makegood.JobProcessed || len(sent) != 1 || sent[0] != want {
		t.Errorf("got %s after %q, want one request %q", job.ProcessState, sent, want)
	}
	job, sent = post(nil)
	if job.ProcessState != makegood.JobError || len(sent) != 0 || !strings.Contains(job.Reason, `secret "chat_token": there is no such secret`) || job.FailureCount != 1 {
		t.Errorf("without the secret: got %s, %q, after %q and %d failures", job.ProcessState, job.Reason, sent, job.FailureCount)
	}
}

// The pick-up is an hour after the start, and an undo says why there is nothing to pick up.
func TestTheExampleOfAnErrorSaysIt(t *testing.T) {
	var asked []string
	began := time.Time{}
	book := func(_ context.Context, in map[string]string) (string, error) {
		began = time.Now()
		asked = append(asked, in["from"])
		return "", agent.Kind("no_courier", errors.New("nobody is free"))
	}
	cancel := func(_ context.Context, in map[string]string, _ *string) error {
		asked = append(asked, in["why"])
		return nil
	}
	job := makegoodtest.Run(t, makegoodtest.Case{
		YAML: example(t, "parcel"), Input: map[string]string{"parcel": "p-1"},
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{Agents: []agent.Handler{agent.New("courier", agent.Do("book", book), agent.Undo("cancel", cancel))}}
		},
	})
	want := []string{began.Add(time.Hour).UTC().Format(time.RFC3339), "no_courier"}
	if job.ProcessState != makegood.JobUndone || !slices.Equal(asked, want) {
		t.Errorf("got %s after %q, want it undone after %q", job.ProcessState, asked, want)
	}
	if got := job.Steps[0].Error; got == nil || got.Kind != "no_courier" {
		t.Errorf("the job shows the error %+v, want its kind", got)
	}
}

// shop are the agents of the workflow purchase; the card is declined, or it is not.
func shop(declined bool) func() makegoodtest.Services {
	said := func(_ context.Context, in any) (any, error) { return in, nil }
	none := func(context.Context, any, *any) error { return nil }
	return func() makegoodtest.Services {
		return makegoodtest.Services{Agents: []agent.Handler{
			agent.New("payments", agent.Do("charge", func(_ context.Context, in any) (any, error) {
				if declined {
					return nil, agent.Final(agent.NotApplied(agent.Kind("card_declined", errors.New("no money"))))
				}
				return in, nil
			}).Undo("refund", none)),
			agent.New("stock", agent.Do("pack", said)),
			agent.New("books", agent.Do("invoice", said).Undo("void", none)),
			agent.New("post", agent.Do("thank", func(context.Context, any) (any, error) {
				return nil, agent.Final(errors.New("no paper"))
			})),
		}}
	}
}

// Who cannot pay by card gets an invoice, and nothing is packed; who can is packed for.
func TestTheExampleOfRoutesGoesBothWays(t *testing.T) {
	for declined, want := range map[bool]string{true: "charge invoice thank", false: "charge pack thank"} {
		c := makegoodtest.Case{YAML: example(t, "purchase"), Input: map[string]string{"order": "o-1"}, Services: shop(declined)}
		job := makegoodtest.Run(t, c)
		if job.ProcessState != makegood.JobProcessed || job.Order() != want {
			t.Errorf("declined %v: got %s after %s, want %s", declined, job.ProcessState, job.Order(), want)
		}
		if got := string(job.Output("thank")); got != `{"sent":false}` {
			t.Errorf("declined %v: thank gave %s, want what its route gives", declined, got)
		}
		if got := string(job.Output("invoice")); declined && got != `{"order":"o-1","why":"no money"}` {
			t.Errorf("the invoice says %s", got)
		}
		makegoodtest.CrashEverywhere(t, c)
	}
}

// The order goes to who was first, also when its desk takes a while, and the other is done meanwhile.
func TestTheExampleOfAnyTakesTheFirst(t *testing.T) {
	var ordered []string
	quoting := func(name string, takes time.Duration) agent.Handler {
		return agent.New(name, agent.Do(name, func(ctx context.Context, _ any) (string, error) {
			select {
			case <-time.After(takes):
				return name, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}))
	}
	desk := func(_ context.Context, from string) (string, error) {
		ordered = append(ordered, from)
		if len(ordered) == 1 {
			time.Sleep(20 * time.Second)
			return "", errors.New("busy")
		}
		return from, nil
	}
	job := makegoodtest.Run(t, makegoodtest.Case{YAML: example(t, "quote"), Services: func() makegoodtest.Services {
		return makegoodtest.Services{Agents: []agent.Handler{
			quoting("north", 10*time.Second), quoting("south", time.Second), agent.New("desk", agent.Do("order", desk)),
		}}
	}})
	if job.ProcessState != makegood.JobProcessed || !slices.Equal(ordered, []string{"south", "south"}) {
		t.Errorf("got %s after %q, want two attempts at an order from the south", job.ProcessState, ordered)
	}
}

// The film is asked for until it is ready, each time under another key.
func TestTheExampleOfRepeatWaitsUntilItIsReady(t *testing.T) {
	var keys []string
	render := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"id": 7}`)
			return
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		state := "rendering"
		if len(keys) == 3 {
			state = "ready"
		}
		fmt.Fprintf(w, `{"state": %q, "path": %q}`, state, r.URL.Path)
	})
	job := makegoodtest.Run(t, makegoodtest.Case{YAML: example(t, "render"), Input: map[string]string{"film": "f"}, Services: func() makegoodtest.Services {
		return makegoodtest.Services{HTTP: render}
	}})
	if want := []string{"job/film/1", "job/film/1/2", "job/film/1/3"}; job.ProcessState != makegood.JobProcessed || !slices.Equal(keys, want) {
		t.Errorf("got %s after the keys %q, want %q", job.ProcessState, keys, want)
	}
	if got := string(job.Output("film")); got != `{"state":"ready","path":"/films/7"}` || job.FailureCount != 0 {
		t.Errorf("got %s with %d failures, want the output of the last, and no failure", got, job.FailureCount)
	}
	if took := job.Attempts[len(job.Attempts)-1].At; took < 20*time.Second || took > 25*time.Second {
		t.Errorf("the last attempt was made after %s, want one every ten seconds", took)
	}
}
