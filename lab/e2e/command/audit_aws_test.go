//go:build aws

package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// Through the doors of a stack: a reader sees what was found, and an operator puts it back.
func TestAnAuditOfAStackFindsAndPutsBack(t *testing.T) {
	s := newDeployedStack(t)
	s.job(t, "submit", "order", "--id", "lost", "--input", `{"id":"lost","customer":"c","total":1}`)
	s.job(t, "submit", "order", "--id", "sound", "--input", `{"id":"sound","customer":"c","total":1}`)
	db := dynamodb.NewFromConfig(standin.Config(standin.DynamoDB(t).Endpoint))
	_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(s.name + "-jobs"), UpdateExpression: aws.String("REMOVE CompleteBy"),
		Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "job#lost"}, "SK": &types.AttributeValueMemberS{Value: "job"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := s.run(t, codeOtherwise, "audit"); !strings.Contains(out, "lost  Pending  unfinished, and not in the index\n2 jobs looked at, 1 found astray") {
		t.Errorf("audit: got %q", out)
	}
	if out, _ := s.run(t, codeOtherwise, "audit", "--mend"); !strings.Contains(out, "1 put back") {
		t.Errorf("audit --mend: got %q", out)
	}
	if out, _ := s.run(t, 0, "audit"); !strings.Contains(out, "2 jobs looked at, 0 found astray") {
		t.Errorf("audit, when it was put back: got %q", out)
	}
	if job, err := s.store.Load(t.Context(), "lost"); err != nil || job.CompleteBy.IsZero() {
		t.Errorf("its key: got %v, %v, want one", job.CompleteBy, err)
	}
	if !strings.Contains(s.said(), `"job":"lost","verdict":"applied","reason":"","by":"`+operatorARN) {
		t.Errorf("the door does not say who woke it:\n%s", s.said())
	}
}

// A job whose steps are all consistent, and which nobody has moved on, has a key, and so is in the index: it is found all
// the same, and put back.
func TestAnAuditOfAStackFindsAJobThatStandsStill(t *testing.T) {
	s := newDeployedStack(t)
	s.job(t, "submit", "order", "--id", "still", "--input", `{"id":"still","customer":"c","total":1}`)
	j, err := s.store.Load(t.Context(), "still")
	if err != nil {
		t.Fatal(err)
	}
	change := store.Change{Job: j, Seen: j.CompleteBy}
	change.Job.Steps[0].Forward = job.Activity{}
	change.Job.CompleteBy = time.Now().Add(30 * 24 * time.Hour)
	if err := s.store.Save(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if out, _ := s.run(t, codeOtherwise, "audit", "--mend"); !strings.Contains(out, "still  Pending  unfinished, without an attempt under way or a wait  put back\n1 job looked at, 1 found astray, 1 put back") {
		t.Errorf("audit --mend: got %q", out)
	}
	if out, _ := s.run(t, 0, "audit"); !strings.Contains(out, "1 job looked at, 0 found astray") {
		t.Errorf("audit, when it was put back: got %q", out)
	}
	if j, err = s.store.Load(t.Context(), "still"); err != nil || j.Steps[0].Forward.State != job.Dispatched || j.Steps[0].Attempt != 2 {
		t.Errorf("its first step: got %+v, %v, want a second attempt", j.Steps[0], err)
	}
}
