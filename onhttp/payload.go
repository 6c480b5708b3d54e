package onhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/transfer"
)

const (
	// maxTransfers is how often in a row a payload is sent, or read on, without a byte that came through: an engine that
	// restarts is back before that. The attempt's own time ends it earlier.
	maxTransfers = 8
	// transferPause is the wait after the first failure; it doubles, up to longestPauses times itself.
	transferPause, longestPauses = 100 * time.Millisecond, 20
)

// payloads are those of the job of one attempt, read and written through the engine. They are never held in memory as
// a whole.
type payloads struct {
	door *door
	// holder says for which attempt.
	holder string
}

var _ payload.Bytes = payloads{}

func (d *door) payloadsOf(task makegood.Task, lockedBy string) (payloads, error) {
	holder, err := json.Marshal(agentdoor.Holder{Job: task.Job, Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: lockedBy})
	return payloads{d, string(holder)}, err
}

// Write stores bytes for the attempt's job, whichever place is given: the engine knows it. A source that can be read
// again from its beginning is sent again where the connection broke.
func (p payloads) Write(ctx context.Context, at payload.Place, from io.Reader) (w payload.Written, err error) {
	if source, again := transfer.Rewindable(from); again {
		w, err = p.send(ctx, source)
	} else {
		w, err = p.sendOnce(ctx, from)
	}
	if err != nil {
		return payload.Written{}, fmt.Errorf("write a payload of job %s: %w", at.Job, inTime(ctx, err))
	}
	return w, nil
}

// send sends a source that can be read again, until the payload is stored.
func (p payloads) send(ctx context.Context, source *transfer.Source) (payload.Written, error) {
	w, err := source.Measure()
	if err != nil {
		return w, err
	}
	return w, p.again(ctx, func() (again bool, err error) {
		body, err := source.Open(w)
		if err != nil {
			return false, err
		}
		again, err = p.put(ctx, body, w.Bytes, func() payload.Written { return w })
		// After Close it is read no more.
		if changed := body.Changed(); changed != nil {
			return false, changed
		}
		return again, err
	})
}

// sendOnce sends a source that cannot be read twice: again only as long as no byte has been read.
func (p payloads) sendOnce(ctx context.Context, from io.Reader) (payload.Written, error) {
	limited := payload.Limit(from)
	err := p.again(ctx, func() (again bool, err error) {
		once := transfer.NewOnce(limited)
		again, err = p.put(ctx, once, -1, limited.Written)
		if failed := once.Failed(); failed != nil {
			return false, failed
		}
		return again && !once.Begun(), err
	})
	if err != nil {
		return payload.Written{}, err // The transport may still be reading it.
	}
	return limited.Written(), nil
}

// put sends length bytes, or with a negative length all there are, and checks that the engine has stored the same
// bytes.
func (p payloads) put(ctx context.Context, body io.ReadCloser, length int64, sent func() payload.Written) (again bool, err error) {
	defer body.Close()
	r, err := p.request(ctx, http.MethodPut, nil, body)
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	// A refused payload is not sent.
	r.Header.Set("Expect", "100-continue")
	if r.ContentLength = length; length == 0 {
		r.Body = http.NoBody
		r.Header.Del("Expect")
	}
	answer, err := p.door.http.Do(r)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return refused(answer)
	}
	var stored makegood.Payload
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&stored); err != nil {
		return true, fmt.Errorf("read the answer: %w", err)
	}
	_ = body.Close() // Close never fails, and after it the body is read no more.
	return false, transfer.Same(stored, sent())
}

// Open reads bytes of the attempt's job, on from where a download broke off.
func (p payloads) Open(ctx context.Context, job string, ref makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	if err := payload.CheckRange(ref, offset, n); err != nil {
		return nil, agent.Final(err)
	}
	if n < 0 {
		n = ref.Bytes - offset
	}
	r, err := transfer.Open(ctx, ref, offset, n, transfer.Asking{
		Ask:    func(at, end int64) (io.ReadCloser, error) { return p.ask(ctx, ref, at, end) },
		Broken: func(err error) error { return fmt.Errorf("read a payload of job %s: %w", job, err) },
		Tries:  maxTransfers,
	})
	if err != nil {
		return nil, fmt.Errorf("open a payload of job %s: %w", job, inTime(ctx, err))
	}
	if n == ref.Bytes {
		r = payload.Checked(ref, r)
	}
	return r, nil
}

// ask asks for the bytes of a payload from at to end, until they are given.
func (p payloads) ask(ctx context.Context, ref makegood.Payload, at, end int64) (body io.ReadCloser, err error) {
	err = p.again(ctx, func() (again bool, err error) {
		body, again, err = p.askOnce(ctx, ref, at, end)
		return again, err
	})
	return body, err
}

func (p payloads) askOnce(ctx context.Context, ref makegood.Payload, at, end int64) (body io.ReadCloser, again bool, err error) {
	query := url.Values{"bytes": {strconv.FormatInt(ref.Bytes, 10)}}
	if ref.By != "" {
		query.Set("by", ref.By)
	}
	r, err := p.request(ctx, http.MethodGet, query, nil, ref.SHA256)
	if err != nil {
		return nil, false, err
	}
	transfer.SetRange(r, ref, at, end)
	answer, err := p.door.http.Do(r)
	if err != nil {
		return nil, true, err
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusPartialContent {
		body, err = transfer.Body(answer, ref, at, end)
		return body, err != nil && !payload.Hopeless(err), err
	}
	defer answer.Body.Close()
	again, err = refused(answer)
	return nil, again, err
}

// request makes a request about payloads of the attempt.
func (p payloads) request(ctx context.Context, method string, query url.Values, body io.Reader, below ...string) (*http.Request, error) {
	at := p.door.base.JoinPath(append([]string{"api", "agents", p.door.agent, "payloads"}, below...)...)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set(agentdoor.HolderHeader, p.holder)
	p.door.showToken(r)
	return r, nil
}

// refused returns the error that an answer stands for, and whether to ask again. The engine says which problems are
// final, and that the attempt is over.
func refused(answer *http.Response) (again bool, err error) {
	wrong := problemOf(answer)
	switch {
	case wrong.final:
		return false, agent.Final(wrong)
	case wrong.status == http.StatusConflict:
		return false, fmt.Errorf("%w: %w", agent.ErrOver, wrong)
	}
	return wrong.status >= http.StatusInternalServerError || wrong.status == http.StatusTooManyRequests, wrong
}

// again calls do until it succeeds, or fails for good, or has failed maxTransfers times.
func (p payloads) again(ctx context.Context, do func() (again bool, err error)) error {
	wait := p.door.pause
	for try := 1; ; try++ {
		again, err := do()
		if err == nil || !again || try == maxTransfers || pause.For(ctx, wait) != nil {
			return err
		}
		wait = min(2*wait, longestPauses*p.door.pause)
	}
}

// inTime is an error; where time has run out, or the work was told to stop, that is why.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
