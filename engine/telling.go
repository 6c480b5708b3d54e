package engine

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/internal/notify"
)

// operator tells those who are there, and a log in place of who is not.
type operator struct{ options Options }

// Announce is what notify.Notifier says.
func (o operator) Announce(ctx context.Context, n notify.Notice) error {
	if o.options.Operator == nil || !n.ForOperator() {
		return notify.Log{Logger: o.options.logger()}.Announce(ctx, n)
	}
	return o.options.Operator(ctx, noticeOf(n))
}

// AgentSilent is what notify.Notifier says.
func (o operator) AgentSilent(ctx context.Context, agent string) error {
	if o.options.AgentSilent == nil {
		return notify.Log{Logger: o.options.logger()}.AgentSilent(ctx, agent)
	}
	return o.options.AgentSilent(ctx, agent)
}

// listeners tells who is registered under the name that a job replies to.
type listeners map[string]func(context.Context, Notice) error

// Announce is what notify.Notifier says.
func (l listeners) Announce(ctx context.Context, n notify.Notice) error {
	tell, ok := l[n.ReplyTo]
	switch {
	case n.ReplyTo == "":
		return nil
	case !ok:
		return fmt.Errorf("nobody is registered as %q in this engine", n.ReplyTo)
	}
	return tell(ctx, noticeOf(n))
}

func noticeOf(n notify.Notice) Notice {
	return Notice{
		Job: n.Job, Workflow: n.Workflow, Seq: n.Seq, ProcessState: n.ProcessState, Reason: n.Reason, At: n.At, ReplyTo: n.ReplyTo, ExpectBy: n.ExpectBy,
	}
}

// AgentSilent is nothing that a listener hears of.
func (listeners) AgentSilent(context.Context, string) error { return nil }

// askers tells who is registered under the names of those who are asked.
type askers map[string]func(context.Context, Question) error

// Ask is what notify.Asker says.
func (a askers) Ask(ctx context.Context, name string, q notify.Question) error {
	tell, ok := a[name]
	if !ok {
		return fmt.Errorf("nobody is registered as %q in this engine", name)
	}
	return tell(ctx, Question(q))
}
