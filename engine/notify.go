package engine

import (
	"context"

	"github.com/makegood-dev/makegood"
)

// Notify names the receivers of news from an engine. A function that returns an error, panics, or is cut off by a
// crash is called again. Each call has 5 seconds; at their end its context ends, the engine stops waiting for it, and
// Options.Logger names the function in an ERROR. With 16 calls that do not return a function is called once a minute,
// and at last once an hour, until one returns. The zero value informs the log alone.
type Notify struct {
	// Operator gets a notice of each job that comes into Error, a notice once a day of those that stay there, and a notice
	// of each job that will not be done when its workflow expects it. It recognises a repeated notice by Job and Seq. Nil:
	// the notices go to Options.Logger.
	Operator func(context.Context, Notice) error
	// AgentSilent is called when tasks of an agent wait and no worker claims them. Nil: Options.Logger gets a line.
	AgentSilent func(ctx context.Context, agent string) error
	// AgentPaused is called when the breaker has paused an agent, and with the reason. Nil: Options.Logger gets a line.
	AgentPaused func(ctx context.Context, agent, reason string) error
	// Alerts are for people, in place of Operator, AgentSilent and AgentPaused. The zero value: there are none.
	Alerts Alerts
	// Listeners are the receivers that a submission may name as ReplyTo: each gets every change of ProcessState of the
	// jobs that name it, at least once, in any order. A failed call is repeated with backoff, for 24 hours.
	Listeners map[string]func(context.Context, Notice) error
	// Questions are the receivers that a workflow may name for the questions of a step that waits (waiting.ask): each gets
	// a question when the wait begins, and reminders, at least once. A failed call is repeated with backoff, until the
	// step waits no more. A Question lets its reader answer: write it to no log.
	Questions map[string]func(context.Context, Question) error
	// AnswerURL is the prefix of the links of Questions: the URL at which the receivers reach CompletionHandler, or
	// Handler, such as https://shop.example/answers. Its host need not be among Options.Hosts. Empty: a Question has the
	// completion token, and no link.
	AnswerURL string
	// Changes gets every change of every job and of each of its steps (docs/changes.md): at least once, those of a job in
	// the order of their numbers, one call at a time. Each call has 10 seconds, and a call that has not returned 5 seconds
	// later is abandoned: the next call may run beside it. A slow receiver delays no job: a job keeps 64 changes that
	// wait, and the field Lost of a change counts the older ones. Nil: no changes are kept for it.
	Changes func(context.Context, makegood.Changes) error
	// LiveChanges lets WatchChanges return changes as they happen, also without Changes.
	LiveChanges bool
}

// Alerts inform people, by a webhook, in place of Operator, AgentSilent and AgentPaused, which inform programs: a
// hundred jobs that stop for one reason are one alert, which says where to look and which command to type
// (docs/alarms.md). An alert that could not be delivered is sent again a minute later.
type Alerts struct {
	// Webhook is the URL to which alerts are posted, in the form that Slack's incoming webhooks take. It is a secret:
	// at most its scheme and host are ever shown.
	Webhook string
	// PageURL is the address at which people reach Handler, such as https://jobs.shop.example: alerts link to the page
	// there. Empty: alerts have no links to it.
	PageURL string
	// RunbookURL is your own runbook, with the headings of docs/alarms.md. Empty: docs/alarms.md.
	RunbookURL string
}
