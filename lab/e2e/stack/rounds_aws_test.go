//go:build aws

package stack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Ten thousand rounds of cancel against completion against resubmit have one winner each on DynamoDB's
// API, as they have on SQLite (internal/httpapi): either the step's success came first, the job is
// Processed and the cancel was refused; or the cancel came first, and the success only said what is to
// be undone. A resubmit never finds anything to do.
func TestTenThousandRoundsHaveOneWinnerEach(t *testing.T) {
	const atOnce = 16
	rounds := 10_000
	if !strings.HasPrefix(standin.DynamoDB(t).Product, "DynamoDB Local") {
		// The ten thousand are shown on AWS's own emulator; elsewhere a sample keeps the run short.
		rounds = 500
	}
	s := bare(t)
	work := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[makegood.ProcessState]int{}
	for range atOnce {
		wg.Go(func() {
			for i := range work {
				state := s.round(fmt.Sprintf("r-%05d", i), i)
				mu.Lock()
				ends[state]++
				mu.Unlock()
			}
		})
	}
	for i := range rounds {
		work <- i
	}
	close(work)
	wg.Wait()
	t.Logf("%d rounds: %v, %d saves lost a race", rounds, ends, s.scheduler.Stats().Conflicts)
	if ends[makegood.JobProcessed] == 0 || ends[makegood.JobUndoing] == 0 {
		t.Errorf("got %v: one side always won, which shows nothing", ends)
	}
}

// bare returns a Scheduler on DynamoDB whose tasks go nowhere.
func bare(t *testing.T) *stack {
	s := &stack{t: t, table: "mg" + strings.ToLower(rand.Text()[:10]), db: dynamodb.NewFromConfig(standin.Config(standin.DynamoDB(t).Endpoint))}
	if err := standin.CreateTable(t.Context(), s.db, dynamostore.Schema(s.table, "due")); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.store, err = dynamostore.New(dynamostore.Config{Client: s.db, Table: s.table, Index: "due"}); err != nil {
		t.Fatal(err)
	}
	if s.compiled, err = workflowfile.Parse("one.yaml", []byte("name: one\nsteps: [{name: charge, agent: a, undo: {action: refund}}]")); err != nil {
		t.Fatal(err)
	}
	if err := s.store.PutDefinition(t.Context(), "one", s.compiled.Hash, s.compiled.Definition); err != nil {
		t.Fatal(err)
	}
	queues, err := localqueue.New(localqueue.Options{Queues: []localqueue.Queue{{Name: "tasks"}, {Name: "events"}, {Name: "quarantine"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.scheduler = scheduler.New(scheduler.Config{
		Jobs: s.store, Closings: s.store, Payloads: s.store, Definitions: s.store, Queue: queues, Events: "events", Quarantine: "quarantine",
		Tasks: func(string) string { return "tasks" }, Instance: "e2e", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	return s
}

func (s *stack) round(id string, n int) makegood.ProcessState {
	ctx, began := context.Background(), time.Now()
	j, _, err := s.scheduler.Submit(ctx, scheduler.Submission{ID: id, Definition: s.compiled.Hash, Input: json.RawMessage(`{}`)})
	if err != nil {
		s.t.Error(err)
		return ""
	}
	reply, err := s.claim(ctx, j)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	var cancel, resubmit machine.Verdict
	sides := []func(){
		func() { cancel = s.ask(id, makegood.VerbCancel) },
		func() { s.reply(id, reply) },
		func() { resubmit = s.ask(id, makegood.VerbResubmit) },
	}
	// Each side is first in turn, by nothing or by up to one and a half times what the two writes before took: against a store
	// that answers one request after the other the success would win every time.
	ahead := time.Since(began) / 2 * time.Duration(n/len(sides)%4)
	var racing sync.WaitGroup
	racing.Go(sides[n%len(sides)])
	time.Sleep(ahead)
	for i := 1; i < len(sides); i++ {
		racing.Go(sides[(i+n)%len(sides)])
	}
	racing.Wait()
	if j, err = s.store.Load(ctx, id); err != nil {
		s.t.Error(err)
		return ""
	}
	won := machine.Refused
	want := makegood.JobProcessed
	if cancel.Kind == machine.Applied {
		won, want = machine.Applied, makegood.JobUndoing
	}
	forward := j.Steps[0].Forward.State
	if cancel.Kind != won || resubmit.Kind != machine.Refused || j.ProcessState != want || forward != job.Done || !savedAsOften(j) {
		s.t.Errorf("%s: cancel %s, resubmit %s, and the job is %s at Rev %d, its step %s", id, cancel.Kind, resubmit.Kind, j.ProcessState, j.Rev, forward)
	}
	return j.ProcessState
}

// savedAsOften reports whether a round has as many saves as it should: the birth and the success; the cancel, if it won;
// then the answer of the closing that it asked for, if that came before the success.
func savedAsOften(j job.Job) bool {
	if j.ProcessState == makegood.JobUndoing {
		return j.Rev == 3 || j.Rev == 4
	}
	return j.Rev == 2
}

// claim takes the first attempt, and returns what a reply to it must say.
func (s *stack) claim(ctx context.Context, j job.Job) (job.Reply, error) {
	now := domain.Instant(time.Now())
	c := job.Claim{Attempt: 1, LockedBy: "agent:" + j.ID, StartedAt: now, CompleteBy: now.Add(30 * time.Second)}
	slot := store.Slot{Agent: "a", Job: j.ID, Birth: j.Birth, Step: "charge"}
	err := s.store.Claim(ctx, slot, c, j.Steps[0].Forward.ClaimUntil())
	return job.Reply{
		Step: "charge", Attempt: c.Attempt, Token: machine.Token(j, "charge", c.Attempt), LockedBy: c.LockedBy, StartedAt: now,
	}, err
}

func (s *stack) ask(id string, verb makegood.Verb) machine.Verdict {
	_, v, err := s.scheduler.Request(context.Background(), id, job.Requested{Verb: verb, Request: string(verb)})
	if err != nil {
		s.t.Errorf("%s of %s: %v", verb, id, err)
	}
	return v
}

func (s *stack) reply(id string, r job.Reply) {
	body, err := wire.EncodeEvent(id, job.StepSucceeded{Reply: r})
	if err != nil {
		s.t.Error(err)
	}
	answer, err := s.scheduler.HandleSQS(context.Background(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, Body: body}}})
	if err != nil || len(answer.BatchItemFailures) > 0 {
		s.t.Errorf("reply of %s: %v, %v", id, answer, err)
	}
}
