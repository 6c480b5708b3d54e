package agent

import (
	"context"
	"errors"
)

// ErrNoSecret: there is no secret of this name. A second call would return the same error.
var ErrNoSecret = errors.New("there is no such secret")

// Secrets returns the value of a secret by its name, [a-z][a-z0-9_]{0,62}, for ${ secret("name") } in a workflow, just
// before the agent works. It is at most 64 KiB of UTF-8. ErrNoSecret gives the step up; any other error is retried
// like a failure of the step. In neither case has the agent begun. It may be called by many goroutines at once.
type Secrets func(ctx context.Context, name string) (string, error)
