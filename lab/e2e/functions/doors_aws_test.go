//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

const (
	adasARN = "arn:aws:iam::000000000000:user/ada"
	orders  = 40
)

// openDoors serves the door's function as each door, and returns a client that knocks there as ada, and who kills its processes when it is switched on.
func (w *world) openDoors(t *testing.T) (*client.Client, *killer) {
	t.Helper()
	bootstrap := build(t, functions+"door")
	var k killer
	address := map[httpapi.Door]string{}
	for _, door := range httpapi.Doors() {
		l := start(t, bootstrap, append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_DOOR="+string(door))...)
		server := httptest.NewServer(k.before(l.function, l.function.URL(standin.Region, map[string]functionurl.Key{"ada": {Secret: "secret", ARN: adasARN}})))
		t.Cleanup(server.Close)
		address[door] = server.URL
	}
	c, err := doors.New(doors.Config{
		AWS:       aws.Config{Region: standin.Region, Credentials: credentials.NewStaticCredentialsProvider("ada", "secret", "")},
		Stack:     "test",
		Addresses: doors.Addresses{Submit: address[httpapi.Submit], Read: address[httpapi.Read], Operate: address[httpapi.Operate]},
	}, client.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	return c, &k
}

// killer kills processes while requests are on their way to them. How many is a part of the requests, and no matter of how long one
// takes: on a slow machine, too, most requests are answered.
type killer struct {
	on     atomic.Bool
	killed atomic.Int64
}

// before kills the process that works on one of two requests, at some moment of its first 30 ms.
func (k *killer) before(function *lambdahost.Function, inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if k.on.Load() && rand.IntN(2) == 0 {
			time.AfterFunc(rand.N(30*time.Millisecond), func() {
				if function.Signal(syscall.SIGKILL, rand.IntN) {
					k.killed.Add(1)
				}
			})
		}
		inner.ServeHTTP(w, r)
	})
}

// each does something to every order, a few at a time.
func each(t *testing.T, do func(id string) error) {
	t.Helper()
	var group sync.WaitGroup
	ids := make(chan string)
	for range 4 {
		group.Go(func() {
			for id := range ids {
				if err := do(id); err != nil {
					t.Errorf("order %s: %v", id, err)
				}
			}
		})
	}
	for i := range orders {
		ids <- fmt.Sprintf("o-%02d", i)
	}
	close(ids)
	group.Wait()
}

// The doors' processes are killed while they work. Whoever knocks tries again, with the same id and the same request:
// what was answered is stored, once, with who asked.
func TestWhatADoorAnswersIsStoredThoughItsProcessesAreKilled(t *testing.T) {
	w := newWorld(t)
	c, k := w.openDoors(t)
	if _, err := c.Publish(t.Context(), fmt.Appendf(nil, polyglot, "tip")); err != nil {
		t.Fatal(err)
	}
	k.on.Store(true)
	each(t, func(id string) error {
		_, err := c.Submit(t.Context(), makegood.Submission{Workflow: "polyglot", ID: id, Input: json.RawMessage(`{"amount":1}`)})
		return err
	})
	each(t, func(id string) error {
		if _, err := c.Request(t.Context(), id, api.Request{Verb: makegood.VerbPause, Reason: "stocktaking"}); err != nil {
			return err
		}
		_, err := c.Request(t.Context(), id, api.Request{Verb: makegood.VerbResume})
		return err
	})
	k.on.Store(false)
	if k.killed.Load() == 0 {
		t.Error("no process was killed, so nothing was shown")
	}
	t.Logf("killed %d processes of the doors at work", k.killed.Load())
	each(t, func(id string) error {
		job, err := w.store.Load(t.Context(), id)
		switch {
		case err != nil:
			return err
		case job.Paused() || job.ProcessState != makegood.JobPending || job.RequestedBy != adasARN:
			return fmt.Errorf("it is %s, paused %t, last asked by %q", job.ProcessState, job.Paused(), job.RequestedBy)
		case job.Rev > 4:
			return fmt.Errorf("it was saved %d times, want its birth, a pause, what that closed, and a resume", job.Rev)
		}
		return nil
	})
	var mismatch *api.MismatchError
	if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "polyglot", ID: "o-00", Input: json.RawMessage(`"other"`)}); !errors.As(err, &mismatch) {
		t.Errorf("the same id with other content: got %v, want a mismatch", err)
	}
	if _, err := c.Request(t.Context(), "o-00", api.Request{Verb: makegood.VerbResubmit}); err == nil {
		t.Error("resubmit of what has not stopped: got no refusal")
	}
}

// How many tasks wait for an agent of a stack is seen through the door that reads, with who asks it and why it is paused; what
// SQS does not say is left open.
func TestHowTheAgentsOfAStackStandIsSeenThroughADoor(t *testing.T) {
	w := newWorld(t)
	w.environment = append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_AGENTS=inventory,payments")
	c, _ := w.openDoors(t)
	if _, err := c.Publish(t.Context(), fmt.Appendf(nil, polyglot, "tip")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "polyglot", ID: "waits", Input: json.RawMessage(`{"amount":1}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PauseAll(t.Context(), makegood.HoldAgent, "payments", "it is down"); err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for deadline := time.Now().Add(patience); waiting == 0; time.Sleep(100 * time.Millisecond) {
		all, err := c.ListAgents(t.Context())
		if err != nil || len(all) == 0 || time.Now().After(deadline) {
			t.Fatalf("got %+v, %v, want a task that waits", all, err)
		}
		waiting = 0
		for _, a := range all {
			if a.Problem != "" || a.Place != api.AgentQueue || a.OldestAt != nil || a.Lately != nil {
				t.Fatalf("got %+v, want what SQS says, and nothing that it does not", a)
			}
			if held := a.Hold != nil; held != (a.Name == "payments") {
				t.Fatalf("got %+v, want the agent payments paused, and no other", a)
			}
			waiting += *a.Waiting
		}
	}
}
