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
	if want := `Bearer ` + token + ` {"text":"hello"}`; job.ProcessState != makegood.Processed || len(sent) != 1 || sent[0] != want {
		t.Errorf("got %s after %q, want one request %q", job.ProcessState, sent, want)
	}
	job, sent = post(nil)
	if job.ProcessState != makegood.Error || len(sent) != 0 || !strings.Contains(job.Reason, `secret "chat_token": there is no such secret`) || job.FailureCount != 1 {
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
	if job.ProcessState != makegood.Undone || !slices.Equal(asked, want) {
		t.Errorf("got %s after %q, want it undone after %q", job.ProcessState, asked, want)
	}
	if got := job.Steps[0].Error; got == nil || got.Kind != "no_courier" {
		t.Errorf("the job shows the error %+v, want its kind", got)
	}
}
