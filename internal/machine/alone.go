package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

// suspectAfter is how often the death of the embedded engine may cut a step off before its attempts run alone.
const suspectAfter = 3

// suspect counts that the engine died over an attempt. After a few deaths its successors run alone, and from then on only the
// death of an engine in which nothing else ran counts: what runs beside the cause of a death is cut off as often as the cause.
func suspect(a *job.Activity, claim job.Claim) {
	if a.Interruptions < suspectAfter || claim.Beside == 0 {
		a.Interruptions++
	}
	if a.Interruptions >= suspectAfter {
		a.Alone = true
	}
}

// spare leaves a silent attempt uncounted that had others beside it in its process, since one of them may be what killed it,
// and says so. Its successors run alone, so this happens once; then it is its own doing, whatever its agent says of others.
func spare(a *job.Activity, claim job.Claim) (why string) {
	if claim.Beside <= 0 || a.Alone {
		return ""
	}
	a.Alone = true
	a.Tries--
	return fmt.Sprintf("not one of those granted: its process had %d more under way, and the next runs alone", claim.Beside)
}
