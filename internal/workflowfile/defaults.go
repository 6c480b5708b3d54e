package workflowfile

import (
	"cmp"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// defaults are a file's values for steps that give none. Definitions do not have them: they are written into the steps.
type defaults struct {
	startBy, timeout makegood.Duration
	retry, undoRetry makegood.Retry
}

func (r reader) defaults(n *yaml.Node, path string) (d defaults) {
	before := len(r.found)
	defaultsKind(&d).read(r, n, path)
	if len(r.found) == before {
		r.checkDefaults(path, d)
	}
	if len(r.found) > before {
		return defaults{}
	}
	return d
}

// checkDefaults reports errors in defaults at the defaults, and not at each step that has them.
func (r reader) checkDefaults(path string, d defaults) {
	bare := makegood.Step{Name: "a", Agent: "a", StartBy: d.startBy, Timeout: d.timeout, Retry: d.retry, Undo: &makegood.Undo{Action: "a", Retry: d.undoRetry}}
	step := domain.WithDefaults((makegood.Workflow{Steps: []makegood.Step{bare}})).Steps[0]
	rules := rules{check: r.check}
	startByField(&step.StartBy).is.check(rules, path+".startBy")
	timeout(&step.Timeout, 0).check(rules, path+".timeout")
	retryKind(&step.Retry, nil).check(rules, path+".retry")
	if d.undoRetry != (makegood.Retry{}) {
		retryKind(&step.Undo.Retry, nil).check(rules, path+".undo.retry")
	}
}

// apply writes defaults into a step. A step that waits by itself has no task and no retry; one with a heartbeat takes
// its time from that.
func (d defaults) apply(s *makegood.Step) {
	if !domain.GetsTasks(s.Agent) {
		return
	}
	s.StartBy = cmp.Or(s.StartBy, d.startBy)
	if s.Heartbeat == 0 {
		s.Timeout = cmp.Or(s.Timeout, d.timeout)
	}
	undo := d.undoRetry
	if !ends(undo) && ends(d.retry) && !ends(s.Retry) {
		// An undo is retried for longer than its step, unless the file sets a time for undos.
		undo.For = domain.DefaultUndoRetryFor
	}
	s.Retry = fill(s.Retry, d.retry)
	if domain.CanUndo(*s) {
		s.Undo.Retry = fill(s.Undo.Retry, undo)
	}
}

// ends reports whether a retry says when it ends.
func ends(r makegood.Retry) bool { return r.Attempts != 0 || r.For != 0 }

// fill returns a retry with its missing fields filled in.
func fill(r, from makegood.Retry) makegood.Retry {
	if !ends(r) {
		r.Attempts, r.For = from.Attempts, from.For
	}
	r.Backoff = cmp.Or(r.Backoff, from.Backoff)
	if r.Max == 0 && from.Max > 0 {
		r.Max = max(from.Max, r.Backoff)
	}
	return r
}
