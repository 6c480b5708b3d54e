package machine

import (
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
)

// ask returns the known answer; if there is none it asks, and no change may be made that depends on the answer.
func (t *turn) ask(a Ask) (found job.Found, known bool) {
	if found, known = t.askInline(a); known {
		return found, true
	}
	if i, ok := t.indexOf(a.Step); ok && a.Kind != AskPermit && t.activity(side{i, a.Undo}).Queued {
		return unsent(a), true
	}
	found, known = t.facts.Found[a]
	if !known && !slices.Contains(t.asks, a) {
		t.asks = append(t.asks, a)
	}
	return found, known
}
