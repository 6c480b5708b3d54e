package agent

import (
	"context"
	"errors"
)

// ErrNoSecret: there is no secret of this name. Asking again would give the same answer.
var ErrNoSecret = errors.New("there is no such secret")

// Secrets gives the value of a secret by its name, [a-z][a-z0-9_]{0,62}: what ${ secret("name") } in a
// workflow asks for, just before the agent works. It is at most 64 KiB of UTF-8. ErrNoSecret gives the
// step up; any other error is tried again like a failure of the step. In neither case has the agent begun. It may be
// called by many goroutines at once.
type Secrets func(ctx context.Context, name string) (string, error)
