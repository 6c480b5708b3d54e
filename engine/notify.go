package engine

import (
	"context"

	"github.com/makegood-dev/makegood"
)

// Notify says who is told of what happens in an engine. A function that returns an error or panics is called again, and
// so is one that a crash cut off. Each has 5 seconds, at whose end its context ends: then nobody waits for it any more,
// and Options.Logger names it in an ERROR. With 16 calls that do not return a function is called once a minute, and at
// last once an hour, until one returns. The zero value tells nobody, but for the log.
type Notify struct {
	// Operator is told of each job that comes into Error, once a day of those that stay there, and of each that will
	// not be done when its workflow expects it. It recognises a second telling by Job and Seq. Nil: Options.Logger
	// hears of it.
	Operator func(context.Context, Notice) error
	// AgentSilent is told that tasks of an agent wait and nobody claims them. Nil: Options.Logger hears of it.
	AgentSilent func(ctx context.Context, agent string) error
	// Alerts are for people, in place of Operator and AgentSilent. The zero value: there are none.
	Alerts Alerts
	// Listeners are those whom a submission may name as ReplyTo: each is told of every change of ProcessState of the
	// jobs that name it, at least once, in any order. One that fails is tried again with backoff, for 24 hours.
	Listeners map[string]func(context.Context, Notice) error
	// Questions are those whom a workflow may name as who is asked to complete a step that waits (waiting.ask): each is
	// told when it begins to wait, and reminded, at least once. One that fails is tried again with backoff, until the
	// step waits no more. A Question lets them answer: it is to be written to no log.
	Questions map[string]func(context.Context, Question) error
	// AnswerURL is what begins the links of Questions: the URL under which CompletionHandler, or Handler, is reached by
	// those who are asked, such as https://shop.example/answers. Its host may be asked for without being one of
	// Options.Hosts. Empty: a Question has the completion token, and no link.
	AnswerURL string
	// Changes is handed every change of every job and of each of its steps (docs/changes.md): at least once, those of a
	// job in the order of their numbers, one call at a time. Each call has 10 seconds, and one that has not returned 5
	// seconds later is given up: then the next call may run beside it. However slow it is, no job waits for it: of a
	// job of which more than 64 wait, a change says how many were lost. Nil: nothing is kept for it.
	Changes func(context.Context, makegood.Changes) error
	// LiveChanges lets WatchChanges show changes as they happen, also without Changes.
	LiveChanges bool
}

// Alerts tell people, by a webhook, what Operator and AgentSilent tell programs: a hundred jobs that stop for one
// reason are one alert, which says what to look at and what to type (docs/alarms.md). What could not be delivered is
// told again a minute later.
type Alerts struct {
	// Webhook is the URL to which alerts are posted, in the form that Slack's incoming webhooks take. It is a secret:
	// at most its scheme and host are ever shown.
	Webhook string
	// PageURL is where people reach Handler, such as https://jobs.shop.example: alerts link to the page there. Empty:
	// they do not.
	PageURL string
	// RunbookURL is a runbook of yours, with the headings of docs/alarms.md. Empty: that.
	RunbookURL string
}
