// Package spend collects the AWS usage of a job while it is worked on: from the stores, which know the cost of their
// requests, from handlers of batches of messages, and from functions, which are billed by time. It holds no prices,
// and makes no decisions.
//
// The next save of the job stores the collected usage (job.Spent). Usage without a later save is lost: the price of a
// count that costs no request.
package spend

import (
	"context"
	"sync"

	"github.com/makegood-dev/makegood/internal/job"
)

// Account collects the usage of one job, until a save keeps it. A nil account collects none. It may be used by many
// goroutines at once.
type Account struct {
	turn *Turn

	mu            sync.Mutex
	spent, stored job.Spent
}

// NewAccount returns the account of a job, for a turn of the function's time; nil: its time is not counted.
func NewAccount(turn *Turn, spent job.Spent) *Account { return &Account{turn: turn, spent: spent} }

// End ends the turn.
func (a *Account) End() {
	if a != nil {
		a.turn.End()
	}
}

// Add adds usage.
func (a *Account) Add(s job.Spent) { a.change(func() { a.spent = a.spent.Plus(s) }) }

// change makes a change under the lock, if there is an account.
func (a *Account) change(make func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	make()
}

// Due returns the usage not kept yet, with the function's time up to now.
func (a *Account) Due() job.Spent {
	if a == nil {
		return job.Spent{}
	}
	a.Add(a.turn.Take())
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// Keep takes off usage that was due, and is kept now.
func (a *Account) Keep(s job.Spent) { a.change(func() { a.spent = a.spent.Minus(s) }) }

// Store notes what of a job a store has stored, or tried to: with what that has cost.
func (a *Account) Store(s job.Spent) { a.change(func() { a.stored = s }) }

// Stored returns the usage stored last; zero: no store has counted.
func (a *Account) Stored() job.Spent {
	if a == nil {
		return job.Spent{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored
}

// accountKey is under which a context has its account.
type accountKey struct{}

// With returns ctx with the account of the job that is worked on under it.
func With(ctx context.Context, a *Account) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, accountKey{}, a)
}

// Without returns ctx without an account: usage under it is counted elsewhere.
func Without(ctx context.Context) context.Context {
	if On(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, accountKey{}, (*Account)(nil))
}

// On returns the account that ctx has; nil: usage under it is not counted.
func On(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// chunk is how many bytes a request to SQS has for one price.
const chunk = 64 << 10

// Share returns the share of each message in a request to SQS with this total of bytes, in parts of one.
func Share(bytes, messages int) int64 {
	return Part(max(1, (bytes+chunk-1)/chunk), messages)
}

// Part returns what each of so many has of things that are counted one by one, in parts of one.
func Part(things, of int) int64 {
	return int64(things) * job.SpentParts / int64(max(1, of))
}
