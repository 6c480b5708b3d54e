package workflowfile

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The table of fields. A row has everything about a field of a workflow file: its name, its place in the Go value, its
// kind with its limits, its default, and the sentence about it, in which %v is the limit. The reader, the rules, the
// JSON Schema and the reference follow. The reader lists the rows, and the rules check them, in their order.

// file is the content of a workflow file: a workflow, and the parts that a job does not keep.
type file struct {
	makegood.Workflow
	defaults  defaults
	schedules []makegood.Schedule
}

// stepName is the pattern of the names of steps.
var stepName = limits.StepName.Pattern()

func workflowKind(f *file) kind {
	return object("a workflow", "", []field{
		{name: "name", is: nameOf(&f.Name, limits.WorkflowName), required: true, about: "The workflow's name."},
		{name: "timeout", is: duration(&f.Timeout, limits.MinTimeout, limits.MaxJobTimeout).unless(f.Timeout == 0),
			about: "How long the whole job may go forward; it never stops an undo. At most %v."},
		{name: "expect", is: duration(&f.Expect, limits.MinTimeout, limits.MaxJobTimeout).unless(f.Expect == 0).and(rules.expect),
			about: "How long a job is expected to take; an operator is told of one that will take longer, before it has. Below the timeout; at most %v."},
		{name: "onFailure", is: phrase(&f.OnFailure, "undo|stop|wait +"+anyDuration+"|restart +[0-9]+( +wait +"+anyDuration+")?").and(of(&f.OnFailure, rules.onFailure)),
			about: fmt.Sprintf("What follows when a step is given up: undo, stop, wait DURATION, or restart ROUNDS (undo, then try again "+
				"from the start; 2 to %d rounds, the first one counted too) with wait DURATION before each new one (default %v). "+
				"Default: undo where any step has one, else stop.", limits.MaxRounds, domain.DefaultRestartWait)},
		{name: "input", is: into(&f.Input, reader.inputSchema).as(typed("object")).atMost(limits.MaxInputSchemaBytes),
			about: "A JSON Schema (draft 2020-12) that the input of a job must fit; a submission that does not is refused. At most %v bytes as JSON. Default: any input does."},
		{name: "defaults", is: into(&f.defaults, reader.defaults).as(defaultsKind(&defaults{}).schema),
			about: "What steps have that say nothing else; a timeout only steps without a heartbeat. Not for approval and wait."},
		{name: "steps", is: list(&f.Steps, items{what: "a list", many: "steps", least: 1, most: limits.MaxSteps}, stepKind).
			refuse(len(f.Steps) == 0, "a workflow must have at least one step"),
			required: true, about: "At most %v."},
		{name: "schedules", is: list(&f.schedules, items{what: "a list", many: "schedules", most: limits.MaxSchedules}, scheduleKind),
			about: "When jobs of the workflow begin by themselves."},
	})
}

func defaultsKind(d *defaults) kind {
	return object("defaults", "", []field{
		startByField(&d.startBy), timeoutField(&d.timeout, 0), {name: "retry", is: retryKind(&d.retry, nil)},
		{name: "undo", is: object("the undo of defaults", "", []field{{name: "retry", is: retryKind(&d.undoRetry, nil)}})},
	})
}

func startByField(at *makegood.Duration) field {
	return field{name: "startBy", is: duration(at, limits.MinTimeout, limits.MaxStartBy), standard: domain.DefaultStartBy,
		about: "How long a task may wait unclaimed before it is sent again. At most %v."}
}

func timeoutField(at *makegood.Duration, heartbeat makegood.Duration) field {
	return field{name: "timeout", is: timeout(at, heartbeat), standard: domain.DefaultTimeout,
		about: "How long an attempt may take, counted from its claim. At most %v; with a heartbeat " + limits.MaxClaim.String() +
			", which is then the default."}
}

// timeout is how long an attempt with this heartbeat may take.
func timeout(at *makegood.Duration, heartbeat makegood.Duration) kind {
	most := limits.MaxTimeout
	if heartbeat != 0 {
		most = limits.MaxClaim
	}
	silent := at.Std() > most && at.Std() <= limits.MaxClaim
	return duration(at, limits.MinTimeout, most).unless(silent).
		refuse(silent, "timeout %s is over %s, so the agent must heartbeat: say how often, such as heartbeat: 1m", short(*at), short(makegood.Duration(most)))
}

// scheduleKind has no rules: those of schedules are in internal/schedule.
func scheduleKind(_ int, s *makegood.Schedule) kind {
	return object("a schedule", "schedule", []field{
		{name: "name", is: nameOf(&s.Name, limits.ScheduleName), required: true,
			about: "Unique where it is kept; it begins the ids of its jobs, NAME:TIME."},
		{name: "cron", is: textOf(&s.Cron),
			about: "Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly."},
		{name: "every", is: duration(&s.Every, limits.MinScheduleEvery, limits.MaxScheduleEvery),
			about: "A rate, in the place of cron, counted from 1970-01-01T00:00:00Z. 10s to %v."},
		{name: "zone", is: textOf(&s.Zone), about: "The time zone of cron, as Europe/Berlin. Default: UTC."},
		{name: "input", is: into(&s.Input, reader.with),
			about: `The input of the jobs; its strings may hold expressions over .time and .schedule. Default: {time: "${ .time }"}.`},
		{name: "missed", is: word(&s.Missed, makegood.MissedSkip, makegood.MissedOne, makegood.MissedAll),
			about: "What becomes of fires that are missed: none, the latest, or the latest atMost are made up for. Default: one."},
		{name: "atMost", is: into(&s.AtMost, reader.whole).as(oneTo(limits.MaxMissed)),
			about: "How many fires missed: all makes up for."},
		{name: "overlap", is: word(&s.Overlap, makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue),
			about: "What becomes of a fire while the job of the one before is unfinished. Default: allow."},
	})
}

func stepKind(i int, s *makegood.Step) kind {
	lasts := lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared}
	return object("a step", "step", []field{
		{name: "name", is: nameOf(&s.Name, limits.StepName).and(func(r rules, path string) { r.unique(path, s.Name, i) }),
			required: true, about: "Unique in the workflow."},
		{name: "agent", is: nameOf(&s.Agent, limits.AgentName), required: true, about: "Whose queue gets the task; http is built in."},
		// A valid name of a step is a valid name of an action, and an invalid one has its error already.
		{name: "action", is: nameOf(&s.Action, limits.ActionName).unless(s.Action == s.Name),
			about: "What the agent is asked to do. Default: the step's name."},
		{name: "needs", is: needsKind(s)},
		{name: "only", is: textOf(&s.Only).as(func() *Schema { return &Schema{Const: makegood.OnlyOnError} }).and(of(s, rules.only)),
			about: "The step begins when the onError or onAnswer of another goes to it, and else is skipped."},
		{name: "when", is: expressionOf(&s.When), about: `An expression "${ ... }" that gives true or false; false skips the step.`},
		{name: "with", is: into(&s.With, reader.with).and(func(r rules, path string) { r.with(path, s.Agent, s.With) }),
			about: "The task's input; its strings may hold expressions. Default: the job's input."},
		startByField(&s.StartBy),
		timeoutField(&s.Timeout, s.Heartbeat),
		{name: "heartbeat", is: heartbeat(&s.Heartbeat, lasts),
			about: "How long the agent may be silent while it works. At most %v. Default: the timeout."},
		{name: "exclusive", is: opposite(&s.Shared), standard: true, about: "Claim before the effect. False: an attempt may run more than once."},
		{name: "retry", is: retryKind(&s.Retry, nil)},
		{name: "onError", is: list(&s.OnError, items{what: "a list, such as [{kind: timeout, do: skip}]", many: "routes", most: limits.MaxRoutes},
			func(i int, e *makegood.ErrorRoute) kind { return routeKind(e, s, i) }),
			about: "What follows from errors, by their kind; the first route that is for one counts. At most %v."},
		{name: "onAnswer", is: into(&s.OnAnswer, reader.onAnswer).as(answersSchema).and(of(s, rules.onAnswer)),
			about: "Of agent approval: what follows from an answer, each one of its choices. An answer that is not here lets the job go on."},
		{name: "repeat", is: optional(&s.Repeat, repeatKind).
			refuse(s.Repeat != nil && domain.WaitsByItself(s.Agent), "a step of agent %s waits by itself, and is not repeated", s.Agent),
			about: "Do the step again until it is ready."},
		{name: "undo", is: into(&s.Undo, reader.undo).as(wordOr("none", func() kind { return undoKind(&makegood.Undo{}, s) })).and(of(s, rules.undo)),
			about: "How the step is undone. none: it is knowingly irreversible."},
		{name: "waiting", is: waitingOf(&s.Waiting, s.Agent)},
	})
}

// needsKind is a list of steps, or {any: a list}.
func needsKind(s *makegood.Step) kind {
	steps := func(least int) kind {
		is := items{what: "a list, such as [reserve]", many: "needs", least: least, most: limits.MaxSteps, distinct: true}
		return list(&s.Needs, is, func(i int, need *string) kind {
			return textOf(need).and(func(r rules, path string) { r.need(path, *s, i) })
		})
	}
	all := field{is: steps(0), about: "The steps that must be done or skipped before. Default: the step above; [] starts at once."}
	one := object("needs", "", []field{{name: "any", is: steps(2), required: true, about: "The first of them that is done suffices; the others go on."}})
	read := func(r reader, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			all.is.read(r, n, path)
			return
		}
		one.read(r, n, path)
		if s.Any = s.Needs != nil; !s.Any {
			r.wrong(path, "needs is a list, such as [reserve], or {any: [reserve, order]}")
		}
	}
	schema := func() *Schema { return &Schema{OneOf: []*Schema{all.schema(), one.schema()}} }
	return kind{read: read, check: all.is.check, schema: schema}.
		refuse(s.Any && len(s.Needs) < 2, "any of %d: want two steps at least", len(s.Needs))
}

// heartbeat is how often the agent of an attempt must heartbeat.
func heartbeat(at *makegood.Duration, lasts lasting) kind {
	return duration(at, limits.MinTimeout, limits.MaxTimeout).unless(*at == 0).and(of(&lasts, rules.heartbeat))
}

func answersSchema() *Schema {
	do := matching("^(undo|stop|fail|goto +" + stepName + ")$")
	do.Description = "undo: undo what was done. stop: Error. fail: the step has failed for good, with an error of the kind answer. goto STEP: pass the step by, and go there."
	return &Schema{Type: "object", Patterned: map[string]*Schema{".": do}}
}

func routeKind(e *makegood.ErrorRoute, s *makegood.Step, i int) kind {
	kindOrAny := func() *Schema { return matching(`^(\*|` + limits.ErrorKind.Pattern() + `)$`) }
	return object("a route of onError", "route", []field{
		{name: "kind", is: nameOf(&e.Kind, limits.ErrorKind).as(kindOrAny).unless(e.Kind == makegood.AnyKind), required: true,
			about: "The kind of error, such as timeout or http_404; * is every error."},
		{name: "do", is: phrase(&e.Do, "fail|stop|skip|retry|goto +"+stepName).and(func(r rules, path string) { r.errorDo(path, *s, e.Do) }),
			required: true,
			about:    "fail: give the step up at once, and go on as onFailure says. retry: try again, also what is final. When it is given up, skip, goto STEP: pass it by; stop: put the job in Error, whatever onFailure says, which is the default of the kinds expression and panic."},
		{name: "retry", is: retryKind(&e.Retry, nil).unless(e.Do.Action != makegood.RouteRetry).
			refuse(e.Retry != (makegood.Retry{}) && e.Do.Action != makegood.RouteRetry, "only a route that says retry has one")},
		{name: "output", is: fixed(&e.Output, limits.MaxInlineBytes, "an output that is given holds no expressions").unless(e.Do.Action != makegood.RouteSkip).
			refuse(e.Output != nil && e.Do.Action != makegood.RouteSkip, "only a route that says skip has an output"),
			about: "Of skip: the step's output, without expressions; at most %v bytes as JSON. Default: null."},
	}).and(func(r rules, path string) { r.reached(path, *s, i) })
}

func repeatKind(p *makegood.Repeat) kind {
	return object("repeat", "", []field{
		{name: "until", is: expressionOf(&p.Until).refuse(p.Until == "", `until is missing: want an expression, such as "${ .output.ready }"`), required: true,
			about: `An expression "${ ... }" that gives true when the step is ready; .output is what the latest attempt gave.`},
		{name: "every", is: duration(&p.Every, limits.MinTimeout, limits.MaxBackoff), standard: domain.DefaultEvery,
			about: "How long after a success that is not ready the next attempt begins. At most %v."},
		{name: "for", is: duration(&p.For, limits.MinTimeout, limits.MaxJobTimeout), standard: domain.DefaultFor,
			about: "How long after the first attempt another may begin. At most %v."},
		{name: "attempts", is: count(&p.Attempts, limits.MaxRepeats), standard: limits.MaxRepeats, about: "How many successes there may be."},
	}).and(of(p, rules.repeat))
}

// undoKind is an undo with an action. Values that it has from its step were checked there.
func undoKind(u *makegood.Undo, s *makegood.Step) kind {
	lasts := lasting{u.Agent, u.Timeout, u.Heartbeat, s.Shared}
	same := lasts == lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared}
	return object("an undo", "undo", []field{
		{name: "agent", is: nameOf(&u.Agent, limits.AgentName).unless(u.Agent == s.Agent), about: "Default: the step's."},
		{name: "action", is: nameOf(&u.Action, limits.ActionName).unless(u.Action == "").
			refuse(u.Action == "" && u.Agent != makegood.HTTPAgent, "the action of an undo is missing"),
			about: "What the agent is asked to do. Only the http agent needs none."},
		{name: "with", is: into(&u.With, reader.with).and(func(r rules, path string) { r.undoWith(path, *u, *s) }),
			about: "Default: the step's; an http undo must say its own."},
		{name: "startBy", is: duration(&u.StartBy, limits.MinTimeout, limits.MaxStartBy).unless(u.StartBy == s.StartBy),
			about: "Default: the step's. At most %v."},
		{name: "timeout", is: timeout(&u.Timeout, u.Heartbeat).unless(same),
			about: "At most %v; with a heartbeat " + limits.MaxClaim.String() + ". Default: the step's, with its heartbeat."},
		{name: "heartbeat", is: heartbeat(&u.Heartbeat, lasts).unless(same),
			about: "At most %v. Default: the step's, where the undo says no timeout."},
		{name: "retry", is: retryKind(&u.Retry, &s.Retry)},
		{name: "waiting", is: waitingOf(&u.Waiting, u.Agent)},
	})
}

// waitingOf is the wait of a step of an agent, or of its undo.
func waitingOf(at **makegood.WaitRules, agent string) kind {
	return optional(at, func(w *makegood.WaitRules) kind { return waitingKind(w, agent) })
}

func waitingKind(w *makegood.WaitRules, agent string) kind {
	return object("waiting", "waiting", []field{
		{name: "ask", is: askedKind(&w.Ask), about: "Registered names of who is told that the step waits, with its completion token."},
		{name: "remind", is: remindKind(w), about: "How long after it began to wait they are reminded."},
		{name: "escalate", is: optional(&w.Escalate, escalateKind)},
		{name: "onTimeout", is: into(&w.OnTimeout, reader.onTimeout).as(wordOr("fail", func() kind { return onTimeoutKind(&makegood.OnTimeout{}) })).
			and(func(r rules, path string) { r.onTimeout(path, agent, w.OnTimeout) }),
			about: "What its deadline means: that the attempt has failed (the default), or that it is done, with an output."},
	})
}

func askedKind(at *[]string) kind {
	is := items{what: "a name, or a list such as [managers]", many: "names", most: limits.MaxAsked, distinct: true, orOne: true}
	return list(at, is, func(i int, name *string) kind {
		return nameOf(name, limits.ReplyName).refuse(slices.Index(*at, *name) < i, "%q is asked twice", *name)
	})
}

func remindKind(w *makegood.WaitRules) kind {
	is := items{what: "a duration, or a list such as [24h, 36h]", many: "reminders", most: limits.MaxReminders, orOne: true}
	moment := func(i int, after *makegood.Duration) kind {
		d := duration(after, limits.MinTimeout, makegood.MaxWait)
		d.schema = field{is: d, about: "At most %v."}.schema
		return d.and(func(r rules, path string) { r.remind(path, *w, i) })
	}
	return list(&w.Remind, is, moment).refuse(len(w.Remind) > 0 && len(w.Ask) == 0, "nobody is reminded: say who is asked, in ask")
}

func escalateKind(e *makegood.Escalate) kind {
	return object("escalate", "", []field{
		{name: "after", is: duration(&e.After, limits.MinTimeout, makegood.MaxWait), required: true,
			about: "How long after it began to wait others are asked, too. At most %v."},
		{name: "ask", is: askedKind(&e.Ask).refuse(len(e.Ask) == 0, "say who is asked then"), required: true, about: "Who else is asked."},
	})
}

func onTimeoutKind(o *makegood.OnTimeout) kind {
	return object("onTimeout", "", []field{
		{name: "output", is: fixed(&o.Output, limits.MaxInlineBytes, "the output of a timeout cannot hold an expression"),
			required: true, about: "The output of the step."},
	})
}

// retryKind is a retry, or what differs in it from an inherited one.
func retryKind(retry, inherited *makegood.Retry) kind {
	ends := inherited != nil && retry.Attempts == inherited.Attempts && retry.For == inherited.For
	waits := inherited != nil && retry.Backoff == inherited.Backoff && retry.Max >= inherited.Max
	return object("retry", "retry", []field{
		{name: "attempts", is: count(&retry.Attempts, limits.MaxAttempts).unless(ends),
			about: "How many attempts there are at most, the first one counted too."},
		{name: "for", is: duration(&retry.For, time.Millisecond, limits.MaxRetryFor).unless(retry.For == 0).and(of(retry, rules.retryFor)).unless(ends),
			standard: domain.DefaultRetryFor, about: "How long after the first failure it is tried again. At most %v."},
		{name: "backoff", is: duration(&retry.Backoff, time.Millisecond, limits.MaxBackoff).unless(waits), standard: domain.DefaultBackoff,
			about: "The longest wait before the first retry; it doubles with each. At most %v."},
		{name: "max", is: duration(&retry.Max, time.Millisecond, limits.MaxBackoff).and(of(retry, rules.retryMax)).unless(waits), standard: domain.DefaultMax,
			about: "The longest wait before any retry. At most %v."},
	})
}
