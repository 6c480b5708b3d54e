package dynamostore

import (
	"fmt"
	"strings"
)

// format is the number of this package's layout of a table, in StoreFormat: 2 since jobs are kept as
// internal/store/jobformat has them. Older tables are refused. A later release that only adds to the layout gives its
// tables a higher number, and this one works on them: Job.Needs marks the jobs that it must not decide about.
const format = 2

// errOfBefore refuses a table of before. It is noticed where noticing is free: at the item of a workflow's name, which
// is read or written when a function starts and when a definition is sent, and in the index on CompleteBy, where the
// keys of jobs had no prefix before claims had items of their own.
var errOfBefore = fmt.Errorf("this table was made by a Makegood of before jobs were stored in format %d, and there is no way from one to the other: "+
	"let its jobs end under the version that made them, and give this version a table of its own", format)

// ofAJob reports whether an entry of an index is that of a job. What else is in it, under a prefix that is not known
// here, was put there by a later version, or by an agent that lies: it is left alone.
func ofAJob(it item) (bool, error) {
	pk := asText(it[attrPK])
	if !strings.Contains(pk, "#") {
		return false, fmt.Errorf("job %s: %w", pk, errOfBefore)
	}
	return strings.HasPrefix(pk, jobPrefix), nil
}

// isSchedule reports whether an item is that of a schedule.
func isSchedule(it item) bool { return asText(it[attrPK]) == schedulesPK }
