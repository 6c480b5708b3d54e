package asl

import "slices"

// tell is what is said of a state.
func (t *translator) tell(s *state) *StateReport {
	if known := t.told[s]; known != nil {
		return known
	}
	r := &StateReport{Name: s.name, Type: s.kind, Pointer: s.pointer}
	t.told[s] = r
	return r
}

// becomes says what the state is in the workflow.
func (r *StateReport) becomes(what string) { r.Becomes = what }

// note says what is otherwise than it was.
func (r *StateReport) note(texts ...string) {
	for _, text := range texts {
		if !slices.Contains(r.Differences, text) {
			r.Differences = append(r.Differences, text)
		}
	}
}

// left says what was not taken over.
func (r *StateReport) left(text string) {
	if !slices.Contains(r.Left, text) {
		r.Left = append(r.Left, text)
	}
}
