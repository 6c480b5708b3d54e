package store

// Sharer is a store that can do without the copies by which its jobs are its own.
type Sharer interface {
	// Shared returns the same jobs without copies, for callers that change neither a job that they were given nor one that
	// they have given. The stored bytes and all answers are the same.
	Shared() Jobs
}

// Shared returns the jobs of a store without copies, where it has them so.
func Shared(j Jobs) Jobs {
	if s, can := j.(Sharer); can {
		return s.Shared()
	}
	return j
}
