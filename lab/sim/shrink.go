package sim

import (
	"slices"
	"strings"
)

// maxShrinks is how many runs are spent on making a violation smaller.
const maxShrinks = 400

// shrink looks for a smaller run that breaks the same rule: fewer jobs and steps, no operators, whole kinds
// of fault left out, then single ones. It returns the smallest that it found, and how that went.
func shrink(o Options, run func(Options) Result) (Options, Result) {
	s := shrinking{run: run, best: o, result: run(o)}
	if len(s.result.Violations) == 0 {
		return o, s.result
	}
	s.rule = rule(s.result)
	for _, jobs := range []int{1, 2} {
		s.try(func(o *Options) { o.jobs = jobs })
	}
	for _, steps := range []int{1, 2, 3} {
		s.try(func(o *Options) { o.steps = steps })
	}
	s.try(func(o *Options) { o.quietOperators = true })
	s.try(func(o *Options) { o.unscheduled = true })
	for _, kind := range Kinds() {
		s.try(func(o *Options) {
			o.off = withKey(o.off, kind)
		})
	}
	s.dropFaults()
	return s.best, s.result
}

type shrinking struct {
	run    func(Options) Result
	rule   string
	best   Options
	result Result
	runs   int
}

// rule is the name of the invariant that a run broke first.
func rule(r Result) string {
	for word := range strings.FieldsSeq(r.Violations[0]) {
		if strings.HasSuffix(word, ":") && strings.ContainsAny(word, "0123456789") && word == strings.ToUpper(word) {
			return word
		}
	}
	return ""
}

// try keeps a change if the run still breaks the rule.
func (s *shrinking) try(change func(*Options)) bool {
	if s.runs >= maxShrinks {
		return false
	}
	s.runs++
	o := s.best
	change(&o)
	r := s.run(o)
	if len(r.Violations) == 0 || rule(r) != s.rule {
		return false
	}
	s.best, s.result = o, r
	return true
}

// dropFaults leaves faults out, many at a time as long as that goes well, and then fewer.
func (s *shrinking) dropFaults() {
	for size := max(1, len(s.result.struck)/2); size >= 1; size /= 2 {
		for at := 0; at < len(s.result.struck); {
			chunk := s.result.struck[at:min(at+size, len(s.result.struck))]
			if !s.try(func(o *Options) { o.without = withKey(o.without, chunk...) }) {
				at += size
			}
		}
	}
}

// withKey returns a copy of a set with more in it.
func withKey[K comparable](set map[K]bool, more ...K) map[K]bool {
	bigger := make(map[K]bool, len(set)+len(more))
	for k := range set {
		bigger[k] = true
	}
	for _, k := range slices.Clone(more) {
		bigger[k] = true
	}
	return bigger
}
