package control

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/store"
)

// errNoPayloads refuses payloads where they have no store.
var errNoPayloads = notHere(fmt.Sprintf("there is no payload store here, and an input or an output has at most %d bytes", makegood.MaxPayloadBytes))

// KeepsPayloads reports whether there is a payload store.
func (s *Service) KeepsPayloads() bool { return s.parts.Large != nil }

// WritePayload implements api.Payloads.
func (s *Service) WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error) {
	err := errors.Join(payload.Place{Job: id}.Check(), limits.CheckPayloadType(mediaType))
	if err != nil {
		err = invalid("%v", err)
	}
	if s.parts.Large == nil {
		err = errNoPayloads
	}
	var p makegood.Payload
	if err == nil {
		p, err = s.parts.Large.WritePayload(ctx, id, mediaType, from)
	}
	return p, store.About(inWords(err), "write a payload of job %s", id)
}

// OpenPayload implements api.Payloads.
func (s *Service) OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error) {
	return s.OpenPayloadRange(ctx, id, p, 0, -1)
}

// OpenPayloadRange implements api.Payloads.
func (s *Service) OpenPayloadRange(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	var r io.ReadCloser
	err := errNoPayloads
	if s.parts.Large != nil {
		r, err = s.parts.Large.OpenPayload(ctx, id, p, offset, n)
	}
	return r, store.About(inWords(err), "open a payload of job %s", id)
}
