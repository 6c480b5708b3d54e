package agent

import (
	"errors"
	"time"
)

// The bounds of a run of an agent in a process of its own, by onhttp.Run or onqueue.Run.
const (
	// DefaultConcurrency is how many attempts run at once where the options do not say.
	DefaultConcurrency = 64
	// MaxConcurrency is the largest number of attempts that may run at once.
	MaxConcurrency = 1000
	// DefaultGrace is how long work may go on after the process was asked to stop, where the options do not say.
	DefaultGrace = 30 * time.Second
	// MaxGrace is the longest time for which work may go on.
	MaxGrace = 30 * 24 * time.Hour
)

// ErrCutOff: when the process was asked to stop, some work was not done within the grace time, and was told to stop. Its
// attempts end by silence, and the jobs make the next ones.
var ErrCutOff = errors.New("work was cut off at the end of the grace time")

// ErrOptions: no work was begun, because an option is wrong, or no stack can be found. Its message says which.
var ErrOptions = errors.New("cannot begin")
