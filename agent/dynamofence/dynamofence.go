// Package dynamofence makes the writes of an agent of a deployed stack to its own DynamoDB table happen exactly once.
//
//	func (l *Ledger) charge(ctx context.Context, in Charge) (Receipt, error) {
//		return dynamofence.Do(ctx, l.fence, []types.TransactWriteItem{{Put: l.line(in)}}, Receipt{Account: in.Account})
//	}
//
// It sends one TransactWriteItems with the agent's items and two more behind them: a condition check, that the claim
// of the attempt still stands in the stack's table, and an item under the task's idempotency key, put if absent, that
// holds the output. So the writes happen only while the attempt is the agent's, and once: every later attempt gets
// the stored output. An undo leaves a mark in that item, or an item of its own under the key of an effect that never
// happened, so that a delayed write can never land after it.
//
// # Requirements
//
// The tables must be of one account and region. The effects go into any table with a text as its partition key, the
// agent's own or one made for them. The agent's role needs dynamodb:ConditionCheckItem of its own claims in the
// stack's table, which no template of ours gives (docs/fence.md has the statement), and PutItem, UpdateItem and
// GetItem in the table of the effects.
//
// # Cost
//
// A transaction takes twice the write units of its items: 2 for the check, as the claim is below 1 KB, and 2 for each
// KB of the item with the output. One that is cancelled costs the same.
package dynamofence

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/fenced"
)

const (
	// MaxItems is how many items of the agent's own fit into a transaction: DynamoDB takes 100, and the fence adds two.
	MaxItems = 98
	// defaultKey is the default of the partition key of the table of effects.
	defaultKey = "PK"
	// defaultExpiresAt is the default of the attribute of its TimeToLive.
	defaultExpiresAt = "ExpiresAt"
	// sortEffect is the sort key of effects, in a table that has one.
	sortEffect = "effect"
)

var (
	// ErrLost: the attempt is no longer the agent's, and no item was written. Return it: the runner checks that this is
	// so, and then sends no reply.
	ErrLost = fenced.ErrLost
	// ErrUndone: the effect was undone, or its undo came first and prevents it. No item was written.
	ErrUndone = fenced.ErrUndone
	// ErrMissing: the job records the step as done, and there is no effect under its key to undo: it expired, or the step
	// was done elsewhere, by a person or before there was a fence. No item was written; but for a repeated step, the
	// effects that are there have been undone.
	ErrMissing = fenced.ErrMissing
	// ErrTask: the context is not that of an attempt, or the attempt has no claim in a DynamoDB table; see
	// Config.Unclaimed.
	ErrTask = fenced.ErrTask
	// ErrItems: there are more items than MaxItems.
	ErrItems = errors.New("too many items for one transaction")
)

// Client is what a Fence needs of DynamoDB; a *dynamodb.Client is one.
type Client interface {
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Config is what a Fence is made of. Client and Effects must be set.
type Config struct {
	Client Client
	// Effects is the table that the effects' items go into. Key is its partition key, a text; default: PK. Sort
	// is its sort key, a text, if it has one.
	Effects, Key, Sort string
	// Keep is how long an effect's item is kept, at least 90 days; zero: for ever. ExpiresAt is the
	// attribute of the table's TimeToLive for it; default: ExpiresAt. A step that is tried again, or undone, after
	// that counts as one that never happened here.
	Keep      time.Duration
	ExpiresAt string
	// Unclaimed lets transactions go without the check of the claim where no DynamoDB table has it: in an embedded
	// engine, for an agent outside of one, on a step with "exclusive: false". Such an effect happens at most once, and
	// never after its undo, but an attempt that is over is not refused. Without it such a task is refused with ErrTask.
	Unclaimed bool
	// Now returns the time that is kept with effects. Default: time.Now.
	Now func() time.Time
}

// Fence makes fenced transactions. It may be used by many goroutines at once.
type Fence struct{ config Config }

// New makes a Fence, without a request to DynamoDB.
func New(c Config) (*Fence, error) {
	switch {
	case c.Client == nil:
		return nil, errors.New("dynamofence: the client is missing")
	case c.Effects == "":
		return nil, errors.New("dynamofence: the table of the effects is missing")
	}
	if err := fenced.CheckKeep(c.Keep); err != nil {
		return nil, fmt.Errorf("dynamofence: %w", err)
	}
	c.Key, c.ExpiresAt = cmp.Or(c.Key, defaultKey), cmp.Or(c.ExpiresAt, defaultExpiresAt)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Fence{config: c}, nil
}

// Effect is what a step did.
type Effect struct {
	// Output is the output of the step, as JSON.
	Output json.RawMessage
	// Attempt did it, at At, and LockedBy held that attempt.
	Attempt  int
	LockedBy string
	At       time.Time
	// Before: another attempt did it, and this one wrote no item.
	Before bool
}

// Do does the step of the attempt that runs in ctx: it writes items, with the output under the task's key, and
// returns the output; where the step was done before, the stored one. See Transact.
func Do[Out any](ctx context.Context, f *Fence, items []types.TransactWriteItem, output Out) (out Out, err error) {
	done, err := f.Transact(ctx, items, output)
	if err != nil {
		return out, err
	}
	return fenced.Read[Out](ctx, done.Output)
}

// Undo undoes the step of the undo that runs in ctx, with the items that undo returns for its output, or for each of
// its outputs. See TransactUndo.
func Undo[Out any](ctx context.Context, f *Fence, undo func(done Out) ([]types.TransactWriteItem, error)) error {
	_, err := f.TransactUndo(ctx, func(stored Effect) ([]types.TransactWriteItem, error) {
		done, err := fenced.ReadForUndo[Out](ctx, stored.Output)
		if err != nil {
			return nil, err
		}
		return undo(done)
	})
	return err
}

// Transact writes items, at most MaxItems, and output, JSON of at most makegood.MaxPayloadBytes, in one transaction.
// Where the step was done before, it writes no item and returns the stored effect. As long as ctx lasts, it repeats a
// transaction that was throttled, conflicted with another (a heartbeat, for one), or got no answer: the same request
// under the same token. If the answers leave the outcome open, it reads the effect.
//
// Errors: ErrLost; ErrUndone; a *RefusedError, if one of the items was refused; ErrTask and ErrItems. Where no item
// was written for certain, the error says so (agent.NotApplied); otherwise the outcome is open, and the next attempt
// finds out.
func (f *Fence) Transact(ctx context.Context, items []types.TransactWriteItem, output any) (Effect, error) {
	ours, err := f.Items(ctx, output)
	if err != nil {
		return Effect{}, err
	}
	return f.send(ctx, items, ours)
}

// TransactUndo undoes a step in one transaction: it writes the items that undo returns for its effect, and marks the
// effect as undone. From then on Transact refuses the step's key with ErrUndone. Where the step never happened, undo
// is not called, happened is false, and its key is refused from now on all the same. Where it was undone before, no
// item is written. undo may be called again, if the effect comes in at the last moment.
//
// A step that was repeated has an effect for each success: undo is called for each, the newest first, in a
// transaction of its own. Those that are undone stay so where one fails, and the next attempt goes on from there.
//
// Errors are those of Transact and of undo; ErrMissing, too.
func (f *Fence) TransactUndo(ctx context.Context, undo func(done Effect) ([]types.TransactWriteItem, error)) (happened bool, err error) {
	undoing, err := fenced.NewUndoing(agent.TaskOf(ctx))
	if err != nil {
		return false, err
	}
	for key, ok := undoing.Key(); ok; key, ok = undoing.Key() {
		is, err := f.undoOne(ctx, key, undoing, undo)
		happened = happened || is == fenced.Done || is == fenced.Undone
		if err != nil {
			return happened, err
		}
		undoing.Next(is)
	}
	return happened, undoing.Err()
}

// undoOne undoes the effect under a key, and returns the state in which it found it.
func (f *Fence) undoOne(
	ctx context.Context, key string, undoing *fenced.Undoing, undo func(Effect) ([]types.TransactWriteItem, error),
) (is fenced.State, err error) {
	task := agent.TaskOf(ctx)
	for range maxLooks {
		found, err := f.look(ctx, key, task.Birth)
		if err != nil {
			return fenced.None, fmt.Errorf("look at the effect of %s: %w", key, err)
		}
		is = undoing.Judge(found.state)
		if is != fenced.Done && is != fenced.None {
			return is, nil
		}
		var items []types.TransactWriteItem
		if is == fenced.Done {
			if items, err = undo(found.Effect); err != nil {
				return is, fenced.Failed(err)
			}
		}
		ours, err := f.undoItems(task, key, is)
		if err != nil {
			return is, err
		}
		if _, err = f.send(ctx, items, ours); !errors.Is(err, errMoved) {
			return is, err
		}
	}
	return is, fmt.Errorf("undo of %s: %w", key, errMoved)
}

// Stored reads, strongly consistent, the effect of the step of the attempt that runs in ctx; false: there is none
// yet. It spares work with a result that Transact would not write. ErrUndone.
func (f *Fence) Stored(ctx context.Context) (done Effect, ok bool, err error) {
	task, err := f.task(ctx)
	if err != nil {
		return Effect{}, false, err
	}
	found, err := f.look(ctx, task.Key, task.Birth)
	if err != nil {
		return Effect{}, false, fmt.Errorf("look at the effect of %s: %w", task.Key, err)
	}
	if found.state == fenced.None {
		return Effect{}, false, nil
	}
	done, err = found.answers(task)
	return done, err == nil, err
}

// Items returns the fence's items for a transaction of the caller's own: they must be its last, in this order. At
// most MaxItems may stand before them. Read the answer with Outcome.
func (f *Fence) Items(ctx context.Context, output any) ([]types.TransactWriteItem, error) {
	task, err := f.task(ctx)
	if err != nil {
		return nil, err
	}
	text, err := fenced.Write(output)
	if err != nil {
		return nil, err
	}
	return append(f.check(task), f.put(task, task.Key, fenced.Done, text)), nil
}

// ClaimCheck is the check of the claim alone, for writes that may be repeated and must not come late, such as
// progress. If the check fails, DynamoDB cancels the transaction with ConditionalCheckFailed at its place: return
// ErrLost.
func (f *Fence) ClaimCheck(ctx context.Context) (types.TransactWriteItem, error) {
	task, err := f.task(ctx)
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	checks := f.check(task)
	if len(checks) == 0 {
		return types.TransactWriteItem{}, unclaimed(task)
	}
	return checks[0], nil
}

// Outcome reads the answer of TransactWriteItems to a transaction that ends with Items: it returns the effect, new or
// stored, or the errors of Transact, which do not cover earlier tries of the transaction. Any other error is returned
// as it is, or wrapped with the reason: the transaction may have to be tried again, with the same ClientRequestToken.
func (f *Fence) Outcome(ctx context.Context, output any, answered error) (Effect, error) {
	task, err := f.task(ctx)
	if err != nil {
		return Effect{}, err
	}
	if answered == nil {
		text, err := fenced.Write(output)
		return Effect{Output: text, Attempt: task.Attempt, LockedBy: task.Claim.LockedBy, At: f.config.Now()}, err
	}
	return f.judge(ctx, answered, append(f.check(task), f.put(task, task.Key, fenced.Done, nil)))
}

// task returns the task of ctx, if it can be fenced.
func (f *Fence) task(ctx context.Context) (makegood.Task, error) {
	task := agent.TaskOf(ctx)
	if task.Key == "" {
		return task, agent.Final(agent.NotApplied(fmt.Errorf("%w: the context is not one in which an agent handles a task", ErrTask)))
	}
	if task.Claim.Table == "" && !f.config.Unclaimed {
		return task, unclaimed(task)
	}
	return task, nil
}

func unclaimed(task makegood.Task) error {
	return agent.Final(agent.NotApplied(fmt.Errorf("%w: the claim of %s is in no DynamoDB table (see Config.Unclaimed)", ErrTask, task.Key)))
}

// newToken distinguishes a transaction from every other.
func newToken() string { return rand.Text() }
