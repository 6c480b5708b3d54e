package limits

import "time"

// The bounds of a run of an agent in a process of its own, by onhttp.Run or onqueue.Run.
const (
	// DefaultAgentConcurrency is how many attempts run at once where the options do not say.
	DefaultAgentConcurrency = 64
	// MaxAgentConcurrency is the largest number of attempts that may run at once.
	MaxAgentConcurrency = 1000
	// DefaultGrace is how long work may go on after the process was asked to stop, where the options do not say.
	DefaultGrace = 30 * time.Second
	// MaxGrace is the longest time for which work may go on.
	MaxGrace = 30 * 24 * time.Hour
)
