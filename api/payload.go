package api

import (
	"context"
	"io"

	"github.com/makegood-dev/makegood"
)

// Payloads writes and reads payloads that are too large for an input or an output, up to
// makegood.MaxLargePayloadBytes. engine.Engine implements it, and so does client.Client, for an engine, and for a
// stack with a payload store.
type Payloads interface {
	// WritePayload reads from to its end and stores the bytes for a job, which may be submitted later: its id must be
	// known before. It returns the reference, which may stand anywhere in an input. mediaType is a type such as
	// application/pdf; empty: none. When it returns, the bytes are durable; they are deleted with the job, or, where no
	// job refers to them, after 46 days. After an error either all bytes are stored or none, and the payload can be
	// written again.
	WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error)
	// OpenPayload reads the bytes of a payload of a job. The last Read returns io.EOF only if all bytes were read and their
	// hash is that of the reference. The caller closes it. Errors: ErrNoPayload.
	OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error)
	// OpenPayloadRange reads n bytes from offset on, or all that follow with a negative n. No hash covers a part.
	// Errors: ErrNoPayload.
	OpenPayloadRange(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}
