package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/payload"
)

// payloads are the payloads of one job, for one agent.
type payloads struct{ *attempt }

var _ agentctx.Payloads = payloads{}

// Write stores bytes for the job, under the agent's name.
func (p payloads) Write(ctx context.Context, mediaType string, from io.Reader) (makegood.Payload, error) {
	at := payload.Place{Job: p.task.Job, By: p.task.Agent}
	written, err := p.large.Write(ctx, at, from)
	if err != nil {
		return makegood.Payload{}, hopeless(err)
	}
	return makegood.Payload{SHA256: written.SHA256, Bytes: written.Bytes, Type: mediaType, By: at.By}, nil
}

// Open reads bytes of the job.
func (p payloads) Open(ctx context.Context, ref makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	r, err := p.large.Open(ctx, p.task.Job, ref, offset, n)
	if err != nil {
		return nil, hopeless(err)
	}
	return reader{r}, nil
}

// reader tells what the agent may return as its own failure.
type reader struct{ io.ReadCloser }

// Read reads on.
func (r reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = hopeless(err)
	}
	return n, err
}

// hopeless makes an error final that would come again with every attempt.
func hopeless(err error) error {
	if payload.Hopeless(err) {
		return agent.Final(err)
	}
	return err
}

// payloadsOf returns where the attempt writes and reads large payloads.
func (a *attempt) payloadsOf() agentctx.Payloads {
	if a.large == nil {
		return nil
	}
	return payloads{a}
}

// spill makes a payload of an output that is too large for a message, if it is valid JSON. If it cannot be written, the
// step fails.
func (a *attempt) spill(worked result) result {
	p := a.payloadsOf()
	if worked.err != nil || len(worked.output) <= makegood.MaxPayloadBytes || p == nil || !json.Valid(worked.output) {
		return worked
	}
	ref, err := p.Write(&a.lease, makegood.PayloadJSON, bytes.NewReader(worked.output))
	if err != nil {
		return result{err: fmt.Errorf("the output of %d bytes cannot be kept: %w", len(worked.output), err)}
	}
	output, err := json.Marshal(ref)
	return result{output, err}
}
