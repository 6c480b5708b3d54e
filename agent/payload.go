package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// ErrNoPayloads: the agent runs where there is no payload store.
var ErrNoPayloads = errors.New("there is no payload store where this agent runs")

func payloadsOf(ctx context.Context) (agentctx.Payloads, error) {
	if p := agentctx.PayloadsOf(ctx); p != nil {
		return p, nil
	}
	return nil, Final(ErrNoPayloads)
}

// WritePayload reads from to its end, at most makegood.MaxLargePayloadBytes, stores the bytes for the job of ctx's
// task, and returns the reference, which the output of the action can hold, anywhere. mediaType is a type such as
// application/pdf; empty: none. When it returns, the bytes are durable, and stored once, however often they are
// written. Only a bounded part is held in memory. Bytes that no output refers to expire (46 days).
//
// After an error no payload is stored. An error that every attempt would meet (too many bytes, no permission, no
// store) is final.
func WritePayload(ctx context.Context, mediaType string, from io.Reader) (makegood.Payload, error) {
	p, err := payloadsOf(ctx)
	if err == nil {
		err = Final(limits.CheckPayloadType(mediaType))
	}
	if err != nil {
		return makegood.Payload{}, err
	}
	return p.Write(ctx, mediaType, from)
}

// OpenPayload reads a payload of the task's job, such as one in the task's input. Its last Read returns io.EOF only if
// all bytes were read and their hash is that of the reference, so do not trust the bytes before that. The caller
// closes it. A payload that is missing, or was altered, is a final error.
func OpenPayload(ctx context.Context, p makegood.Payload) (io.ReadCloser, error) {
	return OpenPayloadRange(ctx, p, 0, -1)
}

// OpenPayloadRange reads n bytes from offset on, or all that follow with a negative n. No hash covers a part:
// embedded, each piece of 64 KB is authenticated; on S3, the bytes are as S3 returns them.
func OpenPayloadRange(ctx context.Context, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	payloads, err := payloadsOf(ctx)
	if err != nil {
		return nil, err
	}
	return payloads.Open(ctx, p, offset, n)
}

// tell decodes the output of a step for its undo; the output may be a large payload as a whole. It passes the
// reference where the action takes any value and the payload cannot be read as JSON.
func tell(ctx context.Context, output json.RawMessage, into any, decode decoder) error {
	const what = "output of the step"
	p, whole := domain.WholePayload(output)
	anything := whole && takesAnything(into)
	if anything && (p.Type != makegood.PayloadJSON || p.Bytes > limits.MaxDecodedPayloadBytes) {
		return decode(what, output, into)
	}
	text, err := inMemory(ctx, what, output, into)
	if err != nil {
		return err
	}
	if err = decode(what, text, into); err != nil && anything {
		return decode(what, output, into)
	}
	return err
}

func takesAnything(into any) bool {
	switch into.(type) {
	case *any, *json.RawMessage:
		return true
	}
	return false
}

// inMemory returns the JSON of a value; it reads a value that is a large payload as a whole, unless into is a Payload
// itself.
func inMemory(ctx context.Context, what string, value json.RawMessage, into any) (json.RawMessage, error) {
	if _, takes := into.(*makegood.Payload); takes {
		return value, nil
	}
	p, whole := domain.WholePayload(value)
	switch {
	case !whole:
		return value, nil
	case p.Type != makegood.PayloadJSON:
		return nil, refuse("%s: is a payload of type %q, and the action takes JSON: let it take a makegood.Payload", what, p.Type)
	case p.Bytes > limits.MaxDecodedPayloadBytes:
		return nil, refuse("%s: is a payload of %d bytes, and at most %d are read into memory: let the action take a makegood.Payload", what, p.Bytes, limits.MaxDecodedPayloadBytes)
	}
	r, err := OpenPayload(ctx, p)
	if err != nil {
		return nil, NotApplied(fmt.Errorf("%s: %w", what, err))
	}
	text := make([]byte, p.Bytes)
	if _, err = io.ReadFull(r, text); err == nil {
		// The end says whether the bytes are those that were written.
		if _, end := r.Read(make([]byte, 1)); !errors.Is(end, io.EOF) {
			err = end
		}
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, NotApplied(fmt.Errorf("%s: %w", what, err))
	}
	return text, nil
}
