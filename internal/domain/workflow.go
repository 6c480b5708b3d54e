package domain

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// isFor reports whether a route is for errors of a kind.
func isFor(r makegood.ErrorRoute, kind string) bool {
	return r.Kind == makegood.AnyKind || r.Kind == kind && kind != ""
}

// ownMistake is the route of errors that are a mistake of the author of the workflow or the agent. Such an error does
// not concern the work that was asked for, so steps that went well before are not undone for it.
var ownMistake = makegood.ErrorRoute{Do: makegood.ErrorDo{Action: makegood.RouteStop}}

// isOwnMistake reports whether an error of a kind is a mistake of the author of the workflow or the agent:
// KindExpression and KindPanic. Where no route of the step is for it, such an error stops the job when the step is
// given up.
func isOwnMistake(kind string) bool {
	return kind == makegood.KindExpression || kind == makegood.KindPanic
}

// Routes returns the reactions to an error of a kind: the route by which the step is tried again, and the route that
// applies when it is given up. Nil: there is none, and onFailure applies.
func Routes(s makegood.Step, kind string) (again, then *makegood.ErrorRoute) {
	for i := range s.OnError {
		r := &s.OnError[i]
		switch {
		case !isFor(*r, kind):
		case r.Do.Action != makegood.RouteRetry:
			return again, r
		case again == nil:
			again = r
		}
	}
	if isOwnMistake(kind) {
		stop := ownMistake
		return again, &stop
	}
	return again, nil
}

// IsSick reports whether an error that may be tried again says that the agent, or its service, is ill. It does not
// where the step has a route for its kind: the workflow expects it.
func IsSick(s makegood.Step, undo bool, kind string) bool {
	_, then := Routes(s, kind)
	return (undo || then == nil) && !isOwnMistake(kind)
}

// CanTrip reports whether the breaker judges an agent. Of the built-in ones it judges none: the http agent calls many
// services.
func CanTrip(agent string) bool {
	return agent != makegood.HTTPAgent && agent != makegood.AgentWorkflow && !WaitsByItself(agent)
}

// CheckBreakers refuses the name of an agent that can have no breaker; "*" is for all of agents.
func CheckBreakers(breakers, agents []string) error {
	names := slices.DeleteFunc(slices.Clone(agents), func(a string) bool { return !CanTrip(a) })
	for _, name := range breakers {
		if name != "*" && !slices.Contains(names, name) {
			return fmt.Errorf("a breaker of agent %.80q: want one of %q, or * for all", name, names)
		}
	}
	return nil
}

// Before names the steps that come right before one: those that it needs, or those that may go to it.
func Before(w makegood.Workflow, s makegood.Step) []string {
	if s.Only != makegood.OnlyOnError {
		return s.Needs
	}
	var names []string
	for _, other := range w.Steps {
		if goesTo(other, s.Name) {
			names = append(names, other.Name)
		}
	}
	return names
}

// goesTo reports whether a route or an answer of s goes to the step of a name.
func goesTo(s makegood.Step, name string) bool {
	// One suffices, in any order.
	for _, do := range s.OnAnswer {
		if do.Action == makegood.AnswerGoto && do.Step == name {
			return true
		}
	}
	for _, r := range s.OnError {
		if r.Do.Action == makegood.RouteGoto && r.Do.Step == name {
			return true
		}
	}
	return false
}

// WaitsByItself reports whether an agent is one of the built-in agents that get no tasks: wait and approval.
func WaitsByItself(agent string) bool {
	return agent == makegood.AgentWait || agent == makegood.AgentApproval
}

// GetsTasks reports whether an agent is sent tasks: the steps of the others wait, or are done by a job of their own.
func GetsTasks(agent string) bool { return !WaitsByItself(agent) && agent != makegood.AgentWorkflow }

// HasUndo reports whether any step can be undone.
func HasUndo(w makegood.Workflow) bool {
	if w.Part != nil && w.Part.Items == 0 {
		return true // A map without items leaves no effect behind.
	}
	return slices.ContainsFunc(w.Steps, CanUndo)
}

// CanUndo reports whether the step has an undo with an action.
func CanUndo(s makegood.Step) bool { return s.Undo != nil && !s.Undo.None }

// RetryText says in words how a step is tried again: "for 15m, from 1s up to 1m".
func RetryText(r makegood.Retry) string {
	ends := fmt.Sprintf("%d attempts", r.Attempts)
	if r.For > 0 {
		ends = "for " + r.For.String()
		if r.Attempts < limits.MaxAttempts {
			ends += fmt.Sprintf(", %d attempts", r.Attempts)
		}
	}
	return fmt.Sprintf("%s, from %s up to %s", ends, r.Backoff, r.Max)
}
