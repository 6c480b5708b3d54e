package store

// Sharer is a store that can do without the copies by which its jobs are its own.
type Sharer interface {
	// Shared returns the same jobs, of which nothing is copied: for those who change nothing of a job that they were given,
	// and nothing of one that they have given. What is stored, and all answers, are the same.
	Shared() Jobs
}

// Shared returns the jobs of a store without copies, where it has them so.
func Shared(j Jobs) Jobs {
	if s, can := j.(Sharer); can {
		return s.Shared()
	}
	return j
}
