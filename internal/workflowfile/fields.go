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
	return object("a workflow", "",
		row("name", nameOf(&f.Name, limits.WorkflowName), "The workflow's name.").must(),
		row("timeout", duration(&f.Timeout, limits.MinTimeout, limits.MaxJobTimeout).unless(f.Timeout == 0),
			"How long the whole job may go forward; it never stops an undo. At most %v."),
		row("expect", duration(&f.Expect, limits.MinTimeout, limits.MaxJobTimeout).unless(f.Expect == 0).
			refuse(f.Timeout > 0 && f.Expect >= f.Timeout, "expect %s is not below timeout %s: the job would be given up before it counts as late", short(f.Expect), short(f.Timeout)),
			"How long a job is expected to take; an operator is told of one that will take longer, before it has. Below the timeout; at most %v."),
		row("onFailure", phrase(&f.OnFailure, "undo|stop|wait +"+anyDuration+"|restart +[0-9]+( +wait +"+anyDuration+")?").and(of(&f.OnFailure, rules.onFailure)),
			fmt.Sprintf("The reaction when a step is given up: undo, stop, wait DURATION, or restart ROUNDS (undo, then try again "+
				"from the start; 2 to %d rounds, the first one counted too) with wait DURATION before each new one (default %v). "+
				"Default: undo where any step has one, else stop.", limits.MaxRounds, domain.DefaultRestartWait)),
		row("input", into(&f.Input, reader.inputSchema).as(typed("object")).atMost(limits.MaxInputSchemaBytes),
			"A JSON Schema (draft 2020-12) that the input of a job must fit; a submission that does not is refused. At most %v bytes as JSON. Default: any input does."),
		row("defaults", into(&f.defaults, reader.defaults).as(defaultsKind(&defaults{}).schema),
			"The defaults of steps; timeout is for steps without a heartbeat alone. Not for approval and wait."),
		row("steps", list(&f.Steps, items{what: "a list", many: "steps", least: 1, most: limits.MaxSteps}, stepKind).
			refuse(len(f.Steps) == 0, "a workflow must have at least one step"), "At most %v.").must(),
		row("schedules", list(&f.schedules, items{what: "a list", many: "schedules", most: limits.MaxSchedules}, scheduleKind),
			"When jobs of the workflow begin by themselves."),
	)
}

func defaultsKind(d *defaults) kind {
	return object("defaults", "",
		startByField(&d.startBy), timeoutField(&d.timeout, 0), row("retry", retryKind(&d.retry, nil), ""),
		row("undo", object("the undo of defaults", "", row("retry", retryKind(&d.undoRetry, nil), "")), ""),
	)
}

func startByField(at *makegood.Duration) field {
	return row("startBy", duration(at, limits.MinTimeout, limits.MaxStartBy),
		"How long a task may wait unclaimed before it is sent again. At most %v.").or(domain.DefaultStartBy)
}

func timeoutField(at *makegood.Duration, heartbeat makegood.Duration) field {
	return row("timeout", timeout(at, heartbeat),
		"How long an attempt may take, counted from its claim. At most %v; with a heartbeat "+limits.MaxClaim.String()+", which is then the default.").or(domain.DefaultTimeout)
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

// scheduleKind is for the reader and the schema: internal/schedule has the rules of schedules.
func scheduleKind(_ int, s *makegood.Schedule) kind {
	return object("a schedule", "schedule",
		row("name", nameOf(&s.Name, limits.ScheduleName), "Unique where it is kept; it begins the ids of its jobs, NAME:TIME.").must(),
		row("cron", textOf(&s.Cron),
			"Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly."),
		row("every", duration(&s.Every, limits.MinScheduleEvery, limits.MaxScheduleEvery),
			"A rate, in the place of cron, counted from 1970-01-01T00:00:00Z. 10s to %v."),
		row("zone", textOf(&s.Zone), "The time zone of cron, as Europe/Berlin. Default: UTC."),
		row("input", into(&s.Input, reader.with),
			`The input of the jobs; its strings may hold expressions over .time and .schedule. Default: {time: "${ .time }"}.`),
		row("missed", word(&s.Missed, makegood.MissedSkip, makegood.MissedOne, makegood.MissedAll),
			"What becomes of fires that are missed: none, the latest, or the latest atMost are made up for. Default: one."),
		row("atMost", into(&s.AtMost, reader.whole).as(oneTo(limits.MaxMissed)), "How many fires missed: all makes up for."),
		row("overlap", word(&s.Overlap, makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue),
			"What becomes of a fire while the job of the one before is unfinished. Default: allow."),
		row("priority", word(&s.Priority, domain.Priorities()...),
			"Which of the jobs before the gate of an agent with a limit go first. Default: normal."),
	)
}

func stepKind(i int, s *makegood.Step) kind {
	lasts := lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared}
	return object("a step", "step",
		row("name", nameOf(&s.Name, limits.StepName).and(func(r rules, path string) { r.unique(path, s.Name, i) }),
			"Unique in the workflow.").must(),
		row("agent", nameOf(&s.Agent, limits.AgentName).and(of(s, rules.child)),
			"The agent that gets the task. Built in are http, wait, approval, and workflow: the step is done by a job of its own, of the workflow that action names.").must(),
		// A valid name of a step is a valid name of an action, and an invalid one has its error already. So has the name of
		// the workflow of a child.
		row("action", nameOf(&s.Action, limits.ActionName).unless(s.Action == s.Name || s.Agent == makegood.AgentWorkflow),
			"What the agent is asked to do. Default: the step's name."),
		row("needs", needsKind(s), ""),
		row("only", textOf(&s.Only).as(func() *Schema { return &Schema{Const: makegood.OnlyOnError} }).and(of(s, rules.only)),
			"The step begins when the onError or onAnswer of another goes to it, and else is skipped."),
		row("when", expressionOf(&s.When), `An expression "${ ... }" that gives true or false; false skips the step.`),
		row("with", into(&s.With, reader.with).and(func(r rules, path string) { r.with(path, s.Agent, s.With) }),
			"The task's input; its strings may hold expressions. Default: the job's input."),
		startByField(&s.StartBy),
		timeoutField(&s.Timeout, s.Heartbeat),
		row("heartbeat", heartbeat(&s.Heartbeat, lasts),
			"How long the agent may be silent while it works. At most %v. Default: the timeout."),
		row("inline", into(&s.Inline, reader.boolean).as(typed("boolean")).
			refuse(s.Inline && !domain.GetsTasks(s.Agent), "no task is sent to the agent %s, so its step cannot be inline", s.Agent).
			refuse(s.Inline && (s.Heartbeat > 0 || domain.CanUndo(*s) && s.Undo.Heartbeat > 0),
				"a step with a heartbeat takes long, and cannot be inline: leave one of the two out"),
			"Run the step, and its undo, in the process that decides, where its agent is linked in. An attempt that falls silent is undone as any other."),
		row("exclusive", opposite(&s.Shared), "Claim before the effect. False: an attempt may run more than once.").or(true),
		row("retry", retryKind(&s.Retry, nil), ""),
		row("onError", list(&s.OnError, items{what: "a list, such as [{kind: timeout, do: skip}]", many: "routes", most: limits.MaxRoutes},
			func(i int, e *makegood.ErrorRoute) kind { return routeKind(e, s, i) }),
			"Where errors lead, by their kind; the first route that is for one counts. At most %v."),
		row("onAnswer", into(&s.OnAnswer, reader.onAnswer).as(answersSchema).and(of(s, rules.onAnswer)),
			"Of agent approval: where an answer leads, each one of its choices. An answer that is not here lets the job go on."),
		row("repeat", optional(&s.Repeat, repeatKind).
			refuse(s.Repeat != nil && !domain.GetsTasks(s.Agent), "no task is sent to the agent %s, so its step is not repeated", s.Agent),
			"Do the step again until it is ready."),
		row("undo", into(&s.Undo, reader.undo).as(wordOr("none", func() kind { return undoKind(&makegood.Undo{}, s) })).and(of(s, rules.undo)),
			"How the step is undone. none: it is knowingly irreversible."),
		row("waiting", waitingOf(&s.Waiting, s.Agent), ""),
		row("map", optional(&s.Map, mapKind).and(func(r rules, path string) { r.overList(around(path), *s, i) }),
			"Do the step once for each item of a list; its with sees .item and .index."),
	)
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
	one := func() kind {
		return object("needs", "", row("any", steps(2), "The first one that is done suffices; the others go on.").must())
	}
	read := func(r reader, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			all.is.read(r, n, path)
			return
		}
		one().read(r, n, path)
		if s.Any = s.Needs != nil; !s.Any {
			r.wrong(path, "needs is a list, such as [reserve], or {any: [reserve, order]}")
		}
	}
	schema := func() *Schema { return &Schema{OneOf: []*Schema{all.schema(), one().schema()}} }
	return kind{read: read, check: all.is.check, schema: schema}.
		refuse(s.Any && len(s.Needs) < 2, "any of %d: want two steps at least", len(s.Needs))
}

// heartbeat is how often the agent of an attempt must heartbeat.
func heartbeat(at *makegood.Duration, lasts lasting) kind {
	return duration(at, limits.MinTimeout, limits.MaxTimeout).unless(*at == 0).and(of(&lasts, rules.heartbeat))
}

func answersSchema() *Schema {
	do := matching("^(undo|stop|fail|goto +" + stepName + ")$")
	do.Description = "undo: undo the job. stop: Error. fail: the step has failed for good, with an error of the kind answer. goto STEP: pass the step by, and go there."
	return &Schema{Type: "object", Patterned: map[string]*Schema{".": do}}
}

func routeKind(e *makegood.ErrorRoute, s *makegood.Step, i int) kind {
	kindOrAny := func() *Schema { return matching(`^(\*|` + limits.ErrorKind.Pattern() + `)$`) }
	return object("a route of onError", "route",
		row("kind", nameOf(&e.Kind, limits.ErrorKind).as(kindOrAny).unless(e.Kind == makegood.AnyKind),
			"The kind of error, such as timeout or http_404; * is every error.").must(),
		row("do", phrase(&e.Do, "fail|stop|skip|retry|goto +"+stepName).and(func(r rules, path string) { r.errorDo(path, *s, e.Do) }),
			"fail: give the step up at once, and go on as onFailure says. retry: try again, also after a final error. When it is given up, skip, goto STEP: pass it by; stop: put the job in Error, whatever onFailure says, which is the default of the kinds expression and panic.").must(),
		row("retry", retryKind(&e.Retry, nil).unless(e.Do.Action != makegood.RouteRetry).
			refuse(e.Retry != (makegood.Retry{}) && e.Do.Action != makegood.RouteRetry, "only a route that says retry has one"), ""),
		row("output", fixed(&e.Output, limits.MaxInlineBytes, "an output that is given holds no expressions").unless(e.Do.Action != makegood.RouteSkip).
			refuse(e.Output != nil && e.Do.Action != makegood.RouteSkip, "only a route that says skip has an output"),
			"Of skip: the step's output, without expressions; at most %v bytes as JSON. Default: null."),
	).and(func(r rules, path string) { r.reached(path, *s, i) })
}

func repeatKind(p *makegood.Repeat) kind {
	return object("repeat", "",
		row("until", expressionOf(&p.Until).refuse(p.Until == "", `until is missing: want an expression, such as "${ .output.ready }"`),
			`An expression "${ ... }" that gives true when the step is ready; .output is what the latest attempt gave.`).must(),
		row("every", duration(&p.Every, limits.MinTimeout, limits.MaxBackoff),
			"How long after a success that is not ready the next attempt begins. At most %v.").or(domain.DefaultEvery),
		row("for", duration(&p.For, limits.MinTimeout, limits.MaxJobTimeout),
			"How long after the first attempt another may begin. At most %v.").or(domain.DefaultFor),
		row("attempts", count(&p.Attempts, limits.MaxRepeats), "How many successes there may be.").or(limits.MaxRepeats),
	).and(of(p, rules.repeat))
}

// undoKind is an undo with an action. Values that it has from its step were checked there.
func undoKind(u *makegood.Undo, s *makegood.Step) kind {
	lasts := lasting{u.Agent, u.Timeout, u.Heartbeat, s.Shared}
	same := lasts == lasting{s.Agent, s.Timeout, s.Heartbeat, s.Shared}
	return object("an undo", "undo",
		row("agent", nameOf(&u.Agent, limits.AgentName).unless(u.Agent == s.Agent), "Default: the step's."),
		row("action", nameOf(&u.Action, limits.ActionName).unless(u.Action == "" || u.Agent == makegood.AgentWorkflow).
			refuse(u.Action == "" && u.Agent != makegood.HTTPAgent, "the action of an undo is missing"),
			"What the agent is asked to do. Only the http agent needs none."),
		row("with", into(&u.With, reader.with).and(func(r rules, path string) { r.undoWith(path, *u, *s) }),
			"Default: the step's; an http undo must say its own."),
		row("startBy", duration(&u.StartBy, limits.MinTimeout, limits.MaxStartBy).unless(u.StartBy == s.StartBy),
			"Default: the step's. At most %v."),
		row("timeout", timeout(&u.Timeout, u.Heartbeat).unless(same),
			"At most %v; with a heartbeat "+limits.MaxClaim.String()+". Default: the step's, with its heartbeat."),
		row("heartbeat", heartbeat(&u.Heartbeat, lasts).unless(same),
			"At most %v. Default: the step's, where the undo says no timeout."),
		row("retry", retryKind(&u.Retry, &s.Retry), ""),
		row("waiting", waitingOf(&u.Waiting, u.Agent), ""),
	)
}

// waitingOf is the wait of a step of an agent, or of its undo.
func waitingOf(at **makegood.WaitRules, agent string) kind {
	return optional(at, func(w *makegood.WaitRules) kind { return waitingKind(w, agent) })
}

func waitingKind(w *makegood.WaitRules, agent string) kind {
	return object("waiting", "waiting",
		row("ask", askedKind(&w.Ask), "Registered names of the receivers that are told that the step waits, with its completion token."),
		row("remind", remindKind(w), "How long after it began to wait they are reminded."),
		row("escalate", optional(&w.Escalate, escalateKind), ""),
		row("onTimeout", into(&w.OnTimeout, reader.onTimeout).as(wordOr("fail", func() kind { return onTimeoutKind(&makegood.OnTimeout{}) })).
			and(func(r rules, path string) { r.onTimeout(path, agent, w.OnTimeout) }),
			"What its deadline means: that the attempt has failed (the default), or that it is done, with an output."),
	)
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
	return list(&w.Remind, is, moment).refuse(len(w.Remind) > 0 && len(w.Ask) == 0, "the reminder has no receiver: name one in ask")
}

func escalateKind(e *makegood.Escalate) kind {
	return object("escalate", "",
		row("after", duration(&e.After, limits.MinTimeout, makegood.MaxWait),
			"How long after it began to wait others are asked, too. At most %v.").must(),
		row("ask", askedKind(&e.Ask).refuse(len(e.Ask) == 0, "name the receiver of the question"), "Receivers that are asked as well.").must(),
	)
}

func onTimeoutKind(o *makegood.OnTimeout) kind {
	return object("onTimeout", "",
		row("output", fixed(&o.Output, limits.MaxInlineBytes, "the output of a timeout cannot hold an expression"),
			"The output of the step.").must(),
	)
}

// retryKind is a retry, or what differs in it from an inherited one.
func retryKind(retry, inherited *makegood.Retry) kind {
	ends := inherited != nil && retry.Attempts == inherited.Attempts && retry.For == inherited.For
	waits := inherited != nil && retry.Backoff == inherited.Backoff && retry.Max >= inherited.Max
	return object("retry", "retry",
		row("attempts", count(&retry.Attempts, limits.MaxAttempts).unless(ends),
			"How many attempts there are at most, the first one counted too."),
		row("for", duration(&retry.For, time.Millisecond, limits.MaxRetryFor).unless(retry.For == 0).and(of(retry, rules.retryFor)).unless(ends),
			"How long after the first failure it is tried again. At most %v.").or(domain.DefaultRetryFor),
		row("backoff", duration(&retry.Backoff, time.Millisecond, limits.MaxBackoff).unless(waits),
			"The longest wait before the first retry; it doubles with each. At most %v.").or(domain.DefaultBackoff),
		row("max", duration(&retry.Max, time.Millisecond, limits.MaxBackoff).and(of(retry, rules.retryMax)).unless(waits),
			"The longest wait before any retry. At most %v.").or(domain.DefaultMax),
	)
}
