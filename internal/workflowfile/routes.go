package workflowfile

import (
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
		r.add(path, "only %q is not known: want %s", s.Only, makegood.OnlyOnError)
	case len(s.Needs) > 0 || s.Any:
		r.add(around(path)+".needs", "step %q begins when another goes to it, and has no needs beside: leave needs out", s.Name)
	case len(domain.Before(r.workflow, s)) == 0:
		r.add(path, "no onError and no onAnswer says goto %s: step %q would never begin", s.Name, s.Name)
	}
}

// reached checks that errors come to a route of a step.
func (r rules) reached(path string, s makegood.Step, i int) {
	if j := slices.IndexFunc(s.OnError[:i], func(above makegood.ErrorRoute) bool { return hides(above, s.OnError[i]) }); j >= 0 {
		r.add(path, "route %d is for these errors already: no error comes to this one", j+1)
	}
}

// hides reports whether every error of a route meets another one above it that does not pass it on.
func hides(above, route makegood.ErrorRoute) bool {
	covers := above.Kind == makegood.AnyKind || above.Kind == route.Kind
	return covers && (above.Do.Action != makegood.RouteRetry || route.Do.Action == makegood.RouteRetry)
}

// errorDo checks the reaction of a route of a step.
func (r rules) errorDo(path string, s makegood.Step, do makegood.ErrorDo) {
	switch do.Action {
	case makegood.RouteFail, makegood.RouteStop, makegood.RouteSkip, makegood.RouteRetry:
	case makegood.RouteGoto:
		r.target(path, s, do.Step)
	case "":
		r.add(path, "what to do is missing: want fail, stop, skip, retry or goto STEP")
	default:
		r.add(path, "%q is not one of fail, stop, skip, retry and goto STEP", do.Action)
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

// repeat checks that a step can be repeated in its time.
func (r rules) repeat(path string, p makegood.Repeat) {
	if p.Every > p.For && p.Every.Std() <= limits.MaxBackoff && p.For.Std() >= time.Millisecond {
		r.add(path+".every", "every %s is over for %s: it would never be repeated", short(p.Every), short(p.For))
	}
}
