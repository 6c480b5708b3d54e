//go:build aws

package stack

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// A hand that is not ours takes a job's key out of the table. No sweep finds it, and what was sent of its start is stale;
// the audit finds it, and it finishes.
func TestAJobThatLostItsKeyIsFoundAndFinishes(t *testing.T) {
	s := open(t, services.Script{})
	_, _, err := s.scheduler.Submit(t.Context(), scheduler.Submission{
		ID: "lost", Definition: s.compiled.Hash, Input: []byte(`{"id":"lost","customer":"c","total":1}`), StartAt: time.Now().Add(3 * time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table, UpdateExpression: aws.String("REMOVE CompleteBy"),
		Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "job#lost"}, "SK": &types.AttributeValueMemberS{Value: "job"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	job, err := s.store.Load(t.Context(), "lost")
	if err != nil || job.ProcessState != makegood.JobPending || !job.CompleteBy.IsZero() {
		t.Fatalf("got %s, key %v, %v, want it Pending, without a key", job.ProcessState, job.CompleteBy, err)
	}
	audits := supervisor.New(supervisor.Config{
		Index: s.store, Queue: s.queues, Events: "events", Auditor: s.store, Places: s.store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	found, err := audits.Audit(t.Context())
	if want := (supervisor.AuditResult{Audited: 1, Stray: 1, Sent: 1}); err != nil || found != want {
		t.Errorf("audit: got %+v, %v, want %+v", found, err, want)
	}
	if got := s.ends([]string{"lost"})["lost"]; got != makegood.JobProcessed {
		t.Errorf("got %s, want Processed", got)
	}
	// The walk rests now. One that begins anew finds nothing wrong.
	if found, err := audits.Audit(t.Context()); err != nil || found != (supervisor.AuditResult{}) {
		t.Errorf("at its end: got %+v, %v, want a rest", found, err)
	}
	page, _, err := s.store.AuditPage(t.Context(), "", 1000)
	if err != nil || len(page) != 1 || page[0].Stray() != store.Stray("") {
		t.Errorf("afterwards: got %+v, %v, want one job as it should be", page, err)
	}
}
