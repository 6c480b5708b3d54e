// Package dynamotx submits a job in a DynamoDB transaction of the caller's own, beside their own record: the order
// and its job are there together, or not at all.
//
//	submitter, err := dynamotx.New(dynamotx.Config{Client: db, Table: "makegood-jobs", Retention: 30 * 24 * time.Hour})
//	items, err := submitter.Items(ctx, makegood.Submission{Workflow: "order", ID: order.ID, Input: order})
//	items = append(items, types.TransactWriteItem{Put: putOrder})
//	_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
//	if err = dynamotx.Refused(err, "order-1"); err == nil {
//		err = submitter.Committed(ctx, send, "order-1")
//	}
//
// All its items lie under the leading key job#ID; the job itself has the condition that its id is free. So a role
// that submits needs dynamodb:PutItem for the leading keys job#*, and dynamodb:GetItem for workflow#* and
// definition#*. IAM cannot demand the condition: docs/security.md describes the use that a thief could make of such a
// right.
//
// The job has no attempts yet. Committed sends the Scheduler a message, and the Scheduler makes them; without that
// message, the Supervisor's next sweep finds the job.
//
// The recorded cost of the job begins with the reads of Items and with the job's own items in the transaction, which
// takes twice the units of a write. The caller's items are not counted, and neither is a transaction that was
// refused.
package dynamotx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Config says where the deployed Makegood keeps its jobs.
type Config struct {
	Client *dynamodb.Client
	Table  string
	// Shards is the number of shards of the stack's index; zero: the default of the template.
	Shards int
	// Retention is how long the stack keeps a job after its end, as its parameter RetentionDays says; Forever
	// for 0. It must be given, since an input that is stored here expires with it, like all that the stack
	// stores, and a shorter one than the stack's loses inputs that the stack still shows.
	Retention time.Duration
	// Replies are the names that are registered for ReplyTo.
	Replies []string
}

// Forever is the Retention of a stack that keeps its jobs.
const Forever time.Duration = -1

// Submitter makes the items of submissions. It may be used by many goroutines at once.
type Submitter struct {
	store   *dynamostore.Store
	replies []string
}

// New makes a Submitter, without a request to DynamoDB.
func New(c Config) (*Submitter, error) {
	if c.Retention == 0 {
		return nil, errors.New("dynamotx: the retention of the stack is missing: its RetentionDays, or Forever for 0")
	}
	// The index is only read by the Supervisor; its name does not matter here.
	s, err := dynamostore.New(dynamostore.Config{
		Client: c.Client, Table: c.Table, Index: "unused", Shards: c.Shards, Retention: max(0, c.Retention),
	})
	if err != nil {
		return nil, err
	}
	return &Submitter{store: s, replies: c.Replies}, nil
}

// Items returns the writes that store a job, for a transaction of the caller's: one, and a second for an
// input of more than 256 bytes. ID must be given. The workflow's definition is read from the
// table. Errors: *api.InvalidError; any other may pass.
func (s *Submitter) Items(ctx context.Context, sub makegood.Submission) ([]types.TransactWriteItem, error) {
	input, err := json.Marshal(sub.Input)
	if err != nil {
		return nil, &api.InvalidError{Message: fmt.Sprintf("the input is not JSON: %v", err)}
	}
	account := spend.NewAccount(nil, job.Spent{})
	compiled, err := s.workflow(spend.With(ctx, account), sub.Workflow)
	if err != nil {
		return nil, err
	}
	submission := scheduler.Submission{ID: sub.ID, Input: input, StartAt: sub.StartAt, ReplyTo: sub.ReplyTo, Tenant: sub.Tenant, Labels: sub.Labels, Priority: sub.Priority, Traceparent: telemetry.Under(ctx, sub.Traceparent)}
	j, payloads, err := scheduler.Intent(compiled, submission, s.replies, time.Now())
	if errors.Is(err, scheduler.ErrInvalid) {
		return nil, invalid(err)
	}
	if err != nil {
		return nil, err
	}
	j.Spent = account.Due()
	return s.store.CreateItems(j, payloads), nil
}

func (s *Submitter) workflow(ctx context.Context, name string) (*workflowfile.Compiled, error) {
	hash, err := s.store.CurrentDefinition(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &api.InvalidError{Message: fmt.Sprintf("there is no workflow %q in this table", name)}
	}
	if err != nil {
		return nil, err
	}
	definition, err := s.store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	compiled, err := workflowfile.Load(definition)
	if err != nil {
		return nil, fmt.Errorf("definition of workflow %s: %w", name, err)
	}
	return compiled, nil
}

// ErrExists: the transaction was refused because there is a job of this id. It may be this very
// submission, made by an earlier try: compare with client.Get or your own record.
var ErrExists = errors.New("there is a job of this id already")

// Refused makes ErrExists of the error of a transaction that was refused because of its job, and returns
// every other error as it is. The job's item must be the first of the transaction, as in Items.
func Refused(err error, job string) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) == 0 {
		return err
	}
	if code := cancelled.CancellationReasons[0].Code; code != nil && *code == "ConditionalCheckFailed" {
		return fmt.Errorf("job %s: %w", job, ErrExists)
	}
	return err
}

// Committed tells the Scheduler that a job is stored. send puts a message body on the stack's submissions queue.
// After an error the job starts later: the Supervisor finds it.
func (s *Submitter) Committed(ctx context.Context, send func(ctx context.Context, body string) error, id string) error {
	body, err := wire.EncodeEvent(id, job.Submitted{})
	if err != nil {
		return err
	}
	return send(ctx, body)
}

// invalid returns the error of package client for a submission that the Scheduler refuses.
func invalid(err error) error {
	wrong := &api.InvalidError{Message: err.Error()}
	if misfit := (*scheduler.MisfitError)(nil); errors.As(err, &misfit) {
		wrong.Misfits = misfit.Misfits
	}
	return wrong
}
