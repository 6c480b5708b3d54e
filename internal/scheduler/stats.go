package scheduler

// Stats are running totals.
type Stats struct {
	// What became of events. Poisoned are messages in quarantine; Left are messages that were left to a newer release,
	// and the deadlines of its jobs.
	Applied, Duplicate, Stale, Refused, Unknown, Poisoned, Left int64
	// Replies are what agents said, as far as it was applied.
	Replies int64
	// Saves that held, and Conflicts, which were decided again.
	Saves, Conflicts int64
	// Stopped are the jobs that came into Error by a save, Parked those that did so by a raw write.
	Stopped, Parked int64
	// Messages sent; Unstarted are tasks that were due again because they were not claimed.
	Tasks, Reminders, Unstarted int64
	// Closed are the attempts that were closed because they were not wanted any more, Lies the claims that could not
	// be true.
	Closed, Lies int64
	// Stood are the jobs that an audit found standing still, and that were moved on.
	Stood int64
	// Unpublished is how often changes of a job could not be published.
	Unpublished int64
}
