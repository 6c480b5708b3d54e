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

type payloadsKey struct{}

// PayloadsOf returns the payloads of the attempt that runs in ctx; nil: it has none.
func PayloadsOf(ctx context.Context) Payloads {
	p, _ := ctx.Value(payloadsKey{}).(Payloads)
	return p
}

// WithPayloads returns a context in which an action finds large payloads.
func WithPayloads(ctx context.Context, p Payloads) context.Context {
	return context.WithValue(ctx, payloadsKey{}, p)
}
