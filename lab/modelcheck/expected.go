package modelcheck

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// judgeExpected: an operator is told of a late job once a round, no later than by the save behind its moment, and of
// none that is not expected.
func (m *model) judgeExpected(before, after job.Job) string {
	told := 0
	for _, a := range after.Untold {
		if a.Seq > before.Seq && !a.ExpectBy.IsZero() {
			told++
		}
	}
	warned := !before.ExpectBy.IsZero() && before.WarnAt.IsZero()
	switch {
	case told > 0 && (m.w.Expect == 0 || !after.WarnAt.IsZero()):
		return "an operator is told that a job is late, and is to be told of it again"
	case told > 0 && after.Desired != makegood.JobProcessed && !after.AnotherRound:
		return "an operator is told that a job is late, and it is being undone"
	case told > 1 || told > 0 && warned && after.Round == before.Round:
		return fmt.Sprintf("an operator is told again in round %d that a job is late", after.Round)
	case warned && !after.WarnAt.IsZero() && after.Round == before.Round:
		return fmt.Sprintf("an operator was told in round %d, and is to be told of it again", after.Round)
	case after.Expected() && !after.WarnAt.IsZero() && !after.WarnAt.After(base):
		return "a job is late, and nobody is told"
	default:
		return ""
	}
}
