package workflowfile

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// only checks a step that begins when another goes to it.
func (r rules) only(path string, s makegood.Step) {
	switch {
	case s.Only == "":
	case s.Only != makegood.OnlyOnError:
		r.add(path+".only", "only %q is not known: want %s", s.Only, makegood.OnlyOnError)
	case len(s.Needs) > 0 || s.Any:
		r.add(path+".needs", "step %q begins when another goes to it, and has no needs beside: leave needs out", s.Name)
	case len(domain.Before(r.workflow, s)) == 0:
		r.add(path+".only", "no onError and no onAnswer says goto %s: step %q would never begin", s.Name, s.Name)
	}
}

// anyOf checks alternative needs, where one suffices.
func (r rules) anyOf(path string, s makegood.Step) {
	if s.Any && len(s.Needs) < 2 {
		r.add(path+".needs", "any of %d: want two steps at least", len(s.Needs))
	}
}

// onError checks the consequences of errors.
func (r rules) onError(path string, s makegood.Step) {
	if n := len(s.OnError); n > limits.MaxRoutes {
		r.add(path, "%d routes, the limit is %d", n, limits.MaxRoutes)
		return
	}
	for i, route := range s.OnError {
		place := fmt.Sprintf("%s[%d]", path, i)
		if route.Kind != makegood.AnyKind {
			r.name(place+".kind", limits.ErrorKind, route.Kind)
		}
		r.route(place, s, route)
		if j := slices.IndexFunc(s.OnError[:i], func(above makegood.ErrorRoute) bool { return hides(above, route) }); j >= 0 {
			r.add(place, "route %d is for these errors already: no error comes to this one", j+1)
		}
	}
}

// hides reports whether every error of a route meets another one above it that does not pass it on.
func hides(above, route makegood.ErrorRoute) bool {
	covers := above.Kind == makegood.AnyKind || above.Kind == route.Kind
	return covers && (above.Do.Action != makegood.RouteRetry || route.Do.Action == makegood.RouteRetry)
}

func (r rules) route(path string, s makegood.Step, route makegood.ErrorRoute) {
	switch route.Do.Action {
	case makegood.RouteFail, makegood.RouteStop, makegood.RouteSkip:
	case makegood.RouteRetry:
		r.retry(path+".retry", route.Retry)
	case makegood.RouteGoto:
		r.target(path+".do", s, route.Do.Step)
	case "":
		r.add(path+".do", "what to do is missing: want fail, stop, skip, retry or goto STEP")
	default:
		r.add(path+".do", "%q is not one of fail, stop, skip, retry and goto STEP", route.Do.Action)
	}
	if route.Retry != (makegood.Retry{}) && route.Do.Action != makegood.RouteRetry {
		r.add(path+".retry", "only a route that says retry has one")
	}
	switch {
	case route.Output == nil:
	case route.Do.Action != makegood.RouteSkip:
		r.add(path+".output", "only a route that says skip has an output")
	case len(route.Output) > limits.MaxInlineBytes:
		r.add(path+".output", "%d bytes as JSON, the limit is %d", len(route.Output), limits.MaxInlineBytes)
	case bytes.Contains(route.Output, []byte("${")):
		r.add(path+".output", "an output that is given holds no expressions")
	}
}

// target checks where a route goes.
func (r rules) target(path string, s makegood.Step, to string) {
	i, known := r.first[to]
	switch {
	case to == s.Name:
		r.add(path, "step %q cannot go to itself: say retry", s.Name)
	case !known:
		r.add(path, "no step is called %q: known are %s", to, r.known())
	case r.workflow.Steps[i].Only != makegood.OnlyOnError:
		r.add(path, "step %q begins by what it needs: say only: %s there, so that it begins when another goes to it", to, makegood.OnlyOnError)
	}
}

// repeat checks how a step is repeated; its expression is looked at with the others.
func (r rules) repeat(path string, s makegood.Step) {
	if s.Repeat == nil {
		return
	}
	if domain.WaitsByItself(s.Agent) {
		r.add(path, "a step of agent %s waits by itself, and is not repeated", s.Agent)
	}
	if s.Repeat.Until == "" {
		r.add(path+".until", `until is missing: want an expression, such as "${ .output.ready }"`)
	}
	r.duration(path+".every", "every", s.Repeat.Every, limits.MinTimeout, limits.MaxBackoff)
	r.duration(path+".for", "for", s.Repeat.For, limits.MinTimeout, limits.MaxJobTimeout)
	r.repeats(path+".attempts", s.Repeat.Attempts, fmt.Sprint(s.Repeat.Attempts))
	if s.Repeat.Every > s.Repeat.For && s.Repeat.Every.Std() <= limits.MaxBackoff && s.Repeat.For.Std() >= time.Millisecond {
		r.add(path+".every", "every %s is over for %s: it would never be repeated", short(s.Repeat.Every), short(s.Repeat.For))
	}
}

// repeats checks how often a step may be repeated, which was written so.
func (c *check) repeats(path string, attempts int, written string) {
	if attempts < 1 || attempts > limits.MaxRepeats {
		c.add(path, "attempts %s is out of range: 1 to %d", written, limits.MaxRepeats)
	}
}
