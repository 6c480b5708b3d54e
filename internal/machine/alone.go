package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

// suspectAfter is how often the death of the embedded engine may cut a step off before its attempts run alone.
const suspectAfter = 3

// suspect counts an engine death against an attempt. After a few deaths its successors run alone; from then on only
// the death of an engine that ran no other attempt counts, since batch mates are cut off as often as the cause.
func suspect(a *job.Activity, claim job.Claim) {
	if a.Interruptions < suspectAfter || claim.Beside == 0 {
		a.Interruptions++
	}
	if a.Interruptions >= suspectAfter {
		a.Alone = true
	}
}

// spare leaves a silent attempt uncounted if it shared its process with others, since one of the others may have
// killed it, and says so. Its successors run alone, so this happens once: later silences count, whatever the
// agent says of batch mates.
func spare(a *job.Activity, claim job.Claim) (why string) {
	if claim.Beside <= 0 || a.Alone {
		return ""
	}
	a.Alone = true
	a.Tries--
	if a.Inline != "" {
		return "not one of those granted: it was inline, in a process that may have ended for another reason; the next is not"
	}
	return fmt.Sprintf("not one of those granted: its process had %d more under way, and the next runs alone", claim.Beside)
}
