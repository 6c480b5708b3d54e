package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

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
