package layers

import (
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// row is a feature of the product.
type row struct {
	name Feature
	// code is what of the code it stands for: fields of definitions, events, verbs, with spaces between them.
	code string
	// shows reports whether a move of a job shows it; nil: no job does.
	shows func(Move) bool
}

// table are the features, in the order of the page.
func table() []row {
	return append(append(append(ofSteps(), ofWaits()...), ofJobs()...), ofPeople()...)
}

func ofSteps() []row {
	return []row{
		{"branches and joins", "Step.Needs", forward(func(s side) bool { return len(s.def.Needs) > 1 && s.opened() })},
		{"a step whose `when` is false", "Step.When", forward(func(s side) bool {
			return s.became(job.Skipped) && s.is.Settled == nil && s.is.WentTo == "" && s.is.Attempt == 0 && !s.def.Any
		})},
		{"a join that waits for any", "Step.Any", forward(func(s side) bool { return s.is.By != "" && s.was.By == "" })},
		{"`onError`: another step", "Step.OnError Step.Only ErrorRoute.Do ErrorRoute.Output", forward(func(s side) bool { return s.is.WentTo != "" && s.was.WentTo == "" })},
		{"`onError`: by the kind of an error", "ErrorRoute.Kind ErrorRoute.Retry", forward(func(s side) bool {
			return len(s.def.OnError) > 0 && (s.became(job.Backoff) || s.became(job.Failed))
		})},
		{"a failure that stops, though `onFailure` is undo: `do: stop`, a mistake of ours", "", func(m Move) bool {
			undoes := m.Workflow.OnFailure.Action == makegood.FailureUndo || m.Workflow.OnFailure.Action == makegood.FailureRestart
			stops := undoes && m.Before.ProcessState != makegood.JobError && m.After.ProcessState == makegood.JobError && m.After.Desired == makegood.JobProcessed
			return stops && forward(func(s side) bool { return s.became(job.Failed) })(m)
		}},
		{"retries", "Step.Retry Retry.Attempts Retry.Backoff Retry.Max", either(func(s side) bool { return s.became(job.Backoff) && s.is.FailureCount > s.was.FailureCount })},
		{"a time for which it is tried again", "Retry.For", either(func(s side) bool { return !s.is.FailingSince.IsZero() && s.became(job.Failed) })},
		{"`repeat`", "Step.Repeat Repeat.Until Repeat.Every Repeat.For Repeat.Attempts", forward(func(s side) bool { return s.def.Repeat != nil && s.is.Repeats > s.was.Repeats })},
		{"`exclusive: false`", "Step.Shared", either(func(s side) bool { return s.def.Shared && s.opened() })},
		{"inline steps", "Step.Inline", either(func(s side) bool { return s.is.Inline != "" && s.opened() })},
		{"an attempt that stands before the gate of its agent", "Admitted", either(func(s side) bool { return s.was.Queued && s.is.State == job.Dispatched && !s.is.Queued })},
		{"heartbeats", "Step.Heartbeat Undo.Heartbeat", either(func(s side) bool { return s.def.Heartbeat > 0 && s.opened() })},
		{"a task that nobody takes", "Step.StartBy Undo.StartBy", either(func(s side) bool { return s.is.Resent > s.was.Resent })},
		{"silence", "Step.Timeout Undo.Timeout", either(func(s side) bool { return s.is.Silence().Attempt > s.was.Silence().Attempt })},
		{"a success that is late", "StepSucceeded", some(func(m Move, s side) bool {
			e, ok := m.Event.(job.StepSucceeded)
			return ok && s.became(job.Done) && s.was.Silent != nil && e.Attempt == s.was.Silent.Attempt && e.Step == s.def.Name
		})},
		{"a failure that is told", "StepFailed", by(always[job.StepFailed])},
		{"a task that its queue refuses", "DispatchRefused", by(always[job.DispatchRefused])},
		{"an attempt that runs alone", "", either(func(s side) bool { return s.is.Alone && !s.was.Alone })},
		{"undo of what was done", "Step.Undo Undo.Action Undo.With Undo.Agent", some(func(m Move, s side) bool {
			return s.undo && s.became(job.Done) && forwardOf(m.After, s) == job.Done
		})},
		{"undo of an unknown outcome", "Undo.Retry", some(func(m Move, s side) bool {
			return s.undo && s.became(job.Done) && forwardOf(m.After, s) != job.Done
		})},
		{"`undo: none`", "Undo.None", either(func(s side) bool { return s.undo && s.became(job.Irreversible) })},
		{"an output in an item of its own", "", either(func(s side) bool { return s.is.Output.Ref != "" && s.was.Output.Ref == "" })},
		{Outside, "", nil},
		{Fence, "", nil},
		{Payloads, "", nil},
	}
}

func forwardOf(j job.Job, s side) job.ActivityState {
	of, _ := j.Step(s.def.Name)
	return of.Forward.State
}

func ofWaits() []row {
	completed := func(is func(job.StepCompleted) bool) func(Move) bool { return by(is) }
	return []row{
		{"an agent that answers that its step waits", "StepWaiting", by(always[job.StepWaiting])},
		{"`agent: wait`", "", either(func(s side) bool { return s.agent() == makegood.AgentWait && s.became(job.Waiting) })},
		{"`agent: approval`", "", either(func(s side) bool { return s.agent() == makegood.AgentApproval && s.became(job.Waiting) })},
		{"`agent: workflow`, a step that a job of its own does", "ChildEnded", forward(func(s side) bool { return s.agent() == makegood.AgentWorkflow && s.became(job.Done) })},
		{"`map`: a step that jobs do for each of a list", "Step.Map", forward(func(s side) bool { return s.def.Map != nil && s.became(job.Done) })},
		{"the undo of such a step", "", either(func(s side) bool { return s.undo && s.agent() == makegood.AgentWorkflow && s.became(job.Done) })},
		{"an undo that waits", "", either(func(s side) bool { return s.undo && s.became(job.Waiting) })},
		{"completion by a token", "", completed(func(e job.StepCompleted) bool { return e.Token != "" })},
		{"completion by address", "StepCompleted", completed(func(e job.StepCompleted) bool { return e.Token == "" })},
		{"an answer before its step waits", "", either(func(s side) bool {
			return s.is.Completion != nil && s.is.Completion.Early && (s.was.Completion == nil || !s.was.Completion.Early)
		})},
		{"a wait that is made longer", "WaitExtended", by(always[job.WaitExtended])},
		{"questions, reminders, escalations", "Step.Waiting Undo.Waiting WaitRules.Ask WaitRules.Remind WaitRules.Escalate Escalate.After Escalate.Ask Asked", either(func(s side) bool {
			return s.is.Wait != nil && s.is.Wait.Asked > 1
		})},
		{"the end of a wait", "", either(func(s side) bool { return s.was.State == job.Waiting && s.is.State == job.Failed })},
		{"`onAnswer`", "Step.OnAnswer", forward(func(s side) bool {
			return s.was.State == job.Waiting && len(s.def.OnAnswer) > 0 && (s.became(job.Failed) || s.is.WentTo != "" || s.became(job.Done))
		})},
		{"`onTimeout`", "WaitRules.OnTimeout OnTimeout.Output", some(func(m Move, s side) bool {
			_, due := m.Event.(job.DeadlinePassed)
			return due && s.was.State == job.Waiting && s.is.State == job.Done && s.rules() != nil && s.rules().OnTimeout != nil
		})},
	}
}

func ofJobs() []row {
	return []row{
		{"a part of a map, of which items may fail", "Workflow.Part", func(m Move) bool {
			return m.Workflow.Part != nil && forward(func(s side) bool { return s.became(job.Skipped) && s.is.Error != nil })(m)
		}},
		{"the job's timeout", "Workflow.Timeout DeadlinePassed", func(m Move) bool {
			return m.born() && strings.HasPrefix(m.After.Reason, "the job's timeout of") && m.After.Reason != m.Before.Reason
		}},
		{"`expect`", "Workflow.Expect", func(m Move) bool {
			return m.born() && !m.Before.WarnAt.IsZero() && m.After.WarnAt.IsZero() && m.After.Seq > m.Before.Seq && m.After.Round == m.Before.Round
		}},
		{"`onFailure: undo`", "Workflow.OnFailure OnFailure.Action", turned(makegood.FailureUndo)},
		{"`onFailure: stop`", "", turned(makegood.FailureStop)},
		{"`onFailure: wait`", "OnFailure.Wait", func(m Move) bool {
			return m.Workflow.OnFailure.Action == makegood.FailureWait && either(func(s side) bool { return s.became(job.Backoff) && s.is.Tries == 0 })(m)
		}},
		{"rounds that begin by themselves", "OnFailure.Rounds", func(m Move) bool { return m.After.RoundsAgain > m.Before.RoundsAgain }},
		{"a later start", "", func(m Move) bool { return !m.born() && m.After.StartAt.After(m.After.CreatedAt) }},
		{"a job that was stored without its first attempts", "Submitted", by(always[job.Submitted])},
		{"a restart of the engine", "Interrupted", func(m Move) bool { return m.born() && m.After.Incarnation > m.Before.Incarnation }},
		{"who listens to a job", "Told", func(m Move) bool {
			return m.born() && m.After.ReplyTo != "" && len(m.After.Untold) < len(m.Before.Untold)
		}},
		{"who hears of every change", "Published", func(m Move) bool { return m.born() && m.After.Changes.Seq > m.Before.Changes.Seq }},
		{"a history", "", func(m Move) bool { return m.After.History.Count > m.Before.History.Count }},
		{"the input's schema", "Workflow.Input", func(m Move) bool { return len(m.Workflow.Input) > 0 }},
		{Schedules, "Schedule.Cron Schedule.Every Schedule.Zone Schedule.Input Schedule.Missed Schedule.AtMost Schedule.Overlap Schedule.Priority", nil},
		{Hanging, "", nil},
		{Deaf, "NotHeard NotPublished NotAsked", func(m Move) bool {
			return by(always[job.NotHeard])(m) || by(always[job.NotPublished])(m) || by(always[job.NotAsked])(m)
		}},
		{Doubled, "", nil},
		{Batches, "", nil},
		{Deaths, "", nil},
		{PowerLost, "", nil},
		{Clocks, "", nil},
		{Strangers, "", nil},
		{Releases, "", nil},
		{Zombies, "", nil},
	}
}

func ofPeople() []row {
	return []row{
		{"cancel", "cancel AttemptClosed", verb(makegood.VerbCancel)},
		{"undo", "undo", verb(makegood.VerbUndo)},
		{"resubmit of what stopped", "resubmit", func(m Move) bool { return verb(makegood.VerbResubmit)(m) && m.After.Round == m.Before.Round }},
		{"a new round on request", "", func(m Move) bool { return verb(makegood.VerbResubmit)(m) && m.After.Round > m.Before.Round }},
		{"pause, resume of a job", "pause resume", func(m Move) bool { return verb(makegood.VerbResume)(m) && m.Before.Paused() }},
		{"reschedule", "reschedule", verb(makegood.VerbReschedule)},
		{"edit", "edit", func(m Move) bool { return verb(makegood.VerbEdit)(m) && len(m.After.Edits) == len(m.Before.Edits) }},
		{"a map that is edited while it runs", "", func(m Move) bool { return m.born() && edits(m.After) > edits(m.Before) }},
		{"a redo", "redo", verb(makegood.VerbRedo)},
		{"forward again", "forward", verb(makegood.VerbForward)},
		{"a redrive", "redrive", verb(makegood.VerbRedrive)},
		{"settled as done", "Settled", settled(false, func(e job.Settled) bool { return e.Done })},
		{"settled as skipped", "", settled(false, func(e job.Settled) bool { return !e.Done && !e.NotDone })},
		{"settled as not done", "", func(m Move) bool {
			e, ok := m.Event.(job.Settled)
			return ok && e.NotDone && forward(func(s side) bool { return s.def.Name == e.Step && s.was.Unknown && !s.is.Unknown })(m)
		}},
		{"an undo that is settled", "", settled(true, func(job.Settled) bool { return true })},
		{"another definition", "", func(m Move) bool {
			return m.born() && m.After.Definition != m.Before.Definition && m.After.Round == m.Before.Round
		}},
		{"another input", "", func(m Move) bool {
			return m.born() && (string(m.After.Input.Inline) != string(m.Before.Input.Inline) || m.After.Input.Ref != m.Before.Input.Ref)
		}},
		{"an undo over the input of before", "", some(func(m Move, s side) bool {
			of, _ := m.After.Step(s.def.Name)
			return s.undo && s.became(job.Done) && of.Forward.Former > 0
		})},
		{"a pause of an agent", "StepHeld agent", held(makegood.HoldAgent)},
		{"a pause of a workflow", "workflow", held(makegood.HoldWorkflow)},
	}
}

// settled reports whether a person has settled a side so.
func settled(undo bool, how func(job.Settled) bool) func(Move) bool {
	return func(m Move) bool {
		e, ok := m.Event.(job.Settled)
		if !ok || e.Undo != undo || !how(e) {
			return false
		}
		return some(func(m Move, s side) bool {
			return s.def.Name == e.Step && s.undo == undo && s.is.Settled != nil && s.was.Settled == nil
		})(m)
	}
}

// edits is how many edits of maps a job has had.
func edits(j job.Job) (n int) {
	for _, e := range j.Edits {
		n += e.N
	}
	return n
}

func held(kind makegood.HoldKind) func(Move) bool {
	return func(m Move) bool { return m.Before.HeldBy == "" && strings.HasPrefix(m.After.HeldBy, string(kind)+" ") }
}
