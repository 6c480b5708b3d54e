package wire

import (
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// decodeCompletion reads the answer of a completion token's holder. The job is the one that the token names.
func decodeCompletion(m event) (string, job.Event, error) {
	id, place, err := job.ReadCompletionToken(m.Completion)
	switch {
	case errors.Is(err, job.ErrLaterCompletionToken):
		return "", nil, fmt.Errorf("%w: %w", ErrNewer, err)
	case err != nil:
		return "", nil, poison("completion: %v", err)
	case m.Job != "" && m.Job != id:
		return "", nil, poison("the completion token is of job %.40q, and the message names %.40q", id, m.Job)
	case len(m.Output) > makegood.MaxPayloadBytes:
		return "", nil, poison("output of %d bytes, the limit is %d", len(m.Output), makegood.MaxPayloadBytes)
	case canonical.CheckDepth(m.Output) != nil:
		return "", nil, poison("output %v", canonical.CheckDepth(m.Output))
	case len(m.Request) > limits.MaxRequestBytes:
		return "", nil, poison("request has %d bytes, the limit is %d", len(m.Request), limits.MaxRequestBytes)
	}
	if m.Type == typeWaitExtended {
		until, err := instant("deadline", m.Deadline)
		return id, job.WaitExtended{Place: place, Until: until}, err
	}
	e := job.StepCompleted{Place: place, Request: m.Request, By: ByToken}
	if m.Error == nil {
		e.Output = Inline(m.Output)
		return id, e, nil
	}
	failure := m.failure()
	e.Error = &failure
	return id, e, nil
}

// ByToken is the author of a completion that is known only as the holder of its completion token.
const ByToken = "completion token"
