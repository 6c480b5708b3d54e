package api

import (
	"context"
	"io"

	"github.com/makegood-dev/makegood"
)

// Payloads writes and reads what is too large for an input or an output itself, up to makegood.MaxLargePayloadBytes. An
// engine and a Client are one: a Client of an engine, or of a stack that has a payload store.
type Payloads interface {
	// WritePayload stores what from gives up to its end, for a job that will be submitted, or is there: its id must be known
	// before. It returns the reference, which an input can hold, anywhere. mediaType says what it is, such as
	// application/pdf; empty: nothing. When it returns the bytes are durable; they go with the job, or, if none refers to
	// them, after makegood.KeepPayload. After an error nothing is stored, or the whole, and it can be written again.
	WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error)
	// OpenPayload reads what a payload of a job refers to. Its last Read returns io.EOF only if all was read and is what was
	// written, by its hash. It is to be closed. ErrNoPayload.
	OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error)
	// OpenPayloadRange reads n bytes from offset on, or all that follow with a negative n. No hash tells whether a part is
	// what was written. ErrNoPayload.
	OpenPayloadRange(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}
