package scheduler

import (
	"context"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The usage of a job is collected on an account while the job is worked on, and kept by the save that is made anyway:
// package spend. The core does not see it.

// counting returns ctx with an account, if usage is counted: the one that it has, where the receiver of a request has
// opened it.
func (s *Scheduler) counting(ctx context.Context) context.Context {
	if !s.config.Counts || spend.On(ctx) != nil {
		return ctx
	}
	return spend.With(ctx, spend.NewAccount(nil, job.Spent{}))
}

// openAccounts opens an account for each job of a batch, with the cost of its records until here, and the usage that
// they report of their attempts. It returns the function that ends their turns.
func (s *Scheduler) openAccounts(b *batch) (end func()) {
	if !s.config.Counts {
		return func() {}
	}
	spent := map[string]job.Spent{}
	for i, of := range sqsbatch.Spent(b.records, s.config.Clock != nil) {
		spent[b.records[i].MessageId] = of
	}
	var all []*spend.Account
	open := func(s0 job.Spent) *spend.Account {
		account := spend.NewAccount(s.config.Clock.Begin(), s0)
		all = append(all, account)
		return account
	}
	for i := range b.submissions {
		b.submissions[i].account = open(spent[b.submissions[i].record.MessageId])
	}
	for _, w := range b.work {
		sum := w.brought
		for _, record := range w.records {
			sum = sum.Plus(spent[record.MessageId])
		}
		w.account = open(sum)
	}
	return func() {
		for _, account := range all {
			account.End()
		}
	}
}

// brought is the usage of its attempt that the reply in a message reports. Without a report it is estimated: a task
// that was sent, received and deleted by itself, and a claim.
func brought(in wire.Incoming) job.Spent {
	if in.Spent != nil {
		return *in.Spent
	}
	reply, is := in.Event.(interface{ Said() job.Reply })
	if !is {
		return job.Spent{}
	}
	spent := job.Spent{Requests: 3 * job.SpentParts}
	if reply.Said().LockedBy != "" {
		spent.Writes = 1
	}
	return spent
}

// silent is the usage of an attempt that went silent, as far as it can be estimated: as brought, and an invocation.
func silent() job.Spent {
	return job.Spent{Writes: 1, Requests: 3 * job.SpentParts, Invocations: job.SpentParts}
}

// oneRequest is the cost of one notice by a queue.
func oneRequest() job.Spent { return job.Spent{Requests: job.SpentParts} }
