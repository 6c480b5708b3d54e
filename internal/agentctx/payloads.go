package agentctx

import (
	"context"
	"io"

	"github.com/makegood-dev/makegood"
)

// Payloads writes and reads large payloads of the job of a task, as the runner of an agent has them. Many goroutines
// may use one at once.
type Payloads interface {
	// Write stores what from gives up to its end; see agent.WritePayload.
	Write(ctx context.Context, mediaType string, from io.Reader) (makegood.Payload, error)
	// Open reads n bytes from offset on, or all that follow with a negative n; see agent.OpenPayload.
	Open(ctx context.Context, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// PayloadsOf returns the payloads of the attempt that runs in ctx; nil: it has none.
func PayloadsOf(ctx context.Context) Payloads {
	a, _ := Of(ctx)
	return a.Payloads
}
