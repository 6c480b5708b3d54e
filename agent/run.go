package agent

import (
	"errors"
)

// ErrCutOff: the process was asked to stop, and some work was not done within the grace time, and was told to stop.
// Its attempts end by silence, and the jobs make the next ones.
var ErrCutOff = errors.New("work was cut off at the end of the grace time")

// ErrOptions: no work was begun, because an option is wrong, or no stack can be found. Its message says which.
var ErrOptions = errors.New("cannot begin")
