package jobformat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// processStates and activityStates are numbered by their place here, for ever: a new one goes to the end.
func processStates() []makegood.ProcessState {
	return []makegood.ProcessState{
		"", makegood.JobPending, makegood.JobProcessing, makegood.JobProcessed, makegood.JobError,
		makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	}
}

func activityStates() []job.ActivityState {
	return []job.ActivityState{
		job.NotStarted, job.Dispatched, job.Backoff, job.Done, job.Skipped,
		job.Failed, job.Withdrawn, job.Irreversible, job.Waiting,
	}
}

// newerPrefix is before the number of a state that this release has no word for.
const newerPrefix = "newer-"

// stateOf returns the state of a number.
func stateOf[S ~string](n uint64, known []S) S {
	if n < uint64(len(known)) {
		return known[n]
	}
	return S(newerPrefix + strconv.FormatUint(n, 10))
}

// numberOf returns the number of a state.
func numberOf[S ~string](state S, known []S) uint64 {
	if i := slices.Index(known, state); i >= 0 {
		return uint64(i)
	}
	digits, newer := strings.CutPrefix(string(state), newerPrefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	if !newer || err != nil {
		panic(fmt.Sprintf("jobformat: a state %q, which has no number", string(state)))
	}
	return n
}
