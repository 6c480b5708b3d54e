package httpapi_test

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// broken is a store that fails, or whose jobs are damaged.
type broken struct{ err error }

// parts are those of which it is the store and the Scheduler.
func (b broken) parts() control.Config {
	return control.Config{Reading: control.Reading{Store: b, Workflows: b.Workflows}, Scheduler: b, Submit: b.SubmitCurrent}
}

func (b broken) Stands(context.Context, []store.Audited) {}

func (b broken) SubmitCurrent(context.Context, string, scheduler.Submission) (job.Job, bool, error) {
	return job.Job{}, false, b.err
}

func (b broken) Request(context.Context, string, job.Requested) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, b.err
}

func (b broken) Complete(context.Context, string, job.StepCompleted) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, b.err
}

func (b broken) Extend(context.Context, string, job.WaitExtended) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, b.err
}

func (b broken) Plan(context.Context, string, job.Requested) (makegood.Plan, machine.Verdict, error) {
	return makegood.Plan{}, machine.Verdict{}, b.err
}

func (b broken) Offers(context.Context, string) (makegood.Offers, error) {
	return makegood.Offers{}, b.err
}

func (b broken) SentInputs(context.Context, string, string, []time.Time) (makegood.SentInputs, error) {
	return makegood.SentInputs{}, b.err
}

func (b broken) Settle(context.Context, string, job.Settled) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, b.err
}

func (b broken) Asks(context.Context, job.Job, job.Place) (scheduler.Asked, error) {
	return scheduler.Asked{}, b.err
}

func (b broken) Wake(context.Context, string) (job.Job, machine.Verdict, error) {
	return job.Job{}, machine.Verdict{}, b.err
}

func (b broken) AuditPage(context.Context, string, int) ([]store.Audited, string, error) {
	return nil, "", b.err
}

func (b broken) Load(context.Context, string) (job.Job, error) { return job.Job{}, b.err }

func (b broken) Held(context.Context, job.Job) (map[string]job.Claim, error) {
	return nil, b.err
}

func (b broken) Payload(context.Context, string, string) ([]byte, error) { return nil, b.err }

func (b broken) HistoryPages(context.Context, string) (map[string][]byte, error) { return nil, b.err }

func (b broken) Workflows(context.Context) (map[string]string, error) { return nil, b.err }

func (b broken) ListJobs(context.Context, store.Filter, string, int) (store.Page, error) {
	return store.Page{}, b.err
}
