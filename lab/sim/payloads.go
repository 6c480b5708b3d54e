package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/mempayload"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// In some worlds inputs and outputs refer to large payloads. Their bytes are few here: what is played is when they are
// written, kept and read, and by whom.

// large are the payloads of a world.
type large struct {
	store mempayload.Store
	// kept are those that a Scheduler has made sure of.
	kept map[keptKey]bool
}

type keptKey struct {
	job string
	ref makegood.Payload
}

// contentOf is what a payload has that is written for a job under a name.
func contentOf(job, by string) string { return "the payload of " + job + " by " + by }

// refOf is the reference to a text.
func refOf(text, by string) makegood.Payload {
	sum := sha256.Sum256([]byte(text))
	return makegood.Payload{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text)), By: by}
}

// withRef puts a reference into an object.
func withRef(object json.RawMessage, ref makegood.Payload) json.RawMessage {
	text, err := json.Marshal(ref)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(strings.TrimSuffix(string(object), "}") + `,"doc":` + string(text) + "}")
}

// rollPayloads lets some worlds have large payloads, and some of their jobs inputs that refer to one.
func (w *world) rollPayloads() {
	if w.children || !oneIn(w.chance.of("large"), 4) { // The accounts here know of one job for each payload.
		return
	}
	w.large = &large{kept: map[keptKey]bool{}}
	for i := range w.load.jobs {
		o := &w.load.jobs[i]
		r := w.chance.of("large", o.id)
		if oneIn(r, 2) {
			o.doc = contentOf(o.id, "")
			o.input = withRef(o.input, refOf(o.doc, ""))
		}
		if oneIn(r, 4) {
			o.dangling = o.at + between(r, 0, pick(r, 20*time.Millisecond, time.Minute))
		}
	}
}

// writes stores what the input of a job refers to, before it is submitted.
func (w *world) writesDoc(l *life, o order) bool {
	if o.doc == "" {
		return true
	}
	_, err := (payloads{l}).Write(context.Background(), payload.Place{Job: o.id}, strings.NewReader(o.doc))
	return err == nil
}

// dangles submits a job whose input refers to what nobody has written: it is refused, whatever is there already.
func (w *world) dangles(s *scheduler.Scheduler, o order) bool {
	input := withRef(json.RawMessage(`{"n":1}`), refOf("nobody writes this", ""))
	_, _, err := s.SubmitCurrent(context.Background(), o.workflow.Workflow.Name, scheduler.Submission{ID: o.id, Input: input})
	mismatch := new(scheduler.MismatchError)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.violate(o.id, "PAY-1: job %s is granted with an input that refers to nothing", o.id)
	}
	return err == nil || errors.As(err, &mismatch) || errors.Is(err, scheduler.ErrInvalid)
}

// payloads is the payload store as a process reaches it.
type payloads struct{ *life }

var _ payload.Store = payloads{}

// Write is what payload.Bytes says, in a world.
func (p payloads) Write(ctx context.Context, at payload.Place, from io.Reader) (payload.Written, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return payload.Written{}, err
	}
	return ask(ctx, p.life, "write", at.Job+" "+at.By+" "+string(text), func() (payload.Written, error) {
		return p.w.large.store.Write(context.Background(), at, strings.NewReader(string(text)))
	})
}

// Open is what payload.Bytes says, in a world.
func (p payloads) Open(ctx context.Context, job string, ref makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	return ask(ctx, p.life, "open", job+" "+ref.SHA256, func() (io.ReadCloser, error) {
		return p.w.large.store.Open(ctx, job, ref, offset, n)
	})
}

// Keep is what payload.Keeper says, in a world.
func (p payloads) Keep(ctx context.Context, job string, ref makegood.Payload) error {
	return p.call(ctx, "keep", job+" "+ref.SHA256, func() error {
		err := p.w.large.store.Keep(ctx, job, ref)
		if err == nil {
			p.w.large.kept[keptKey{job, ref}] = true
		}
		return err
	})
}

// read reads what a task refers to, which is there and is what was written.
func (a remote) read(ctx context.Context, task makegood.Task) error {
	values := []json.RawMessage{task.Input}
	if task.Undo != nil {
		values = append(values, task.Undo.Output)
	}
	for _, value := range values {
		refs, err := domain.FindPayloads(value)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if err := a.readOne(ctx, task, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a remote) readOne(ctx context.Context, task makegood.Task, ref makegood.Payload) error {
	r, err := agent.OpenPayload(ctx, ref)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r)
	}
	a.alive()
	lost := err != nil && payload.Hopeless(err)
	if lost || err == nil && string(text) != contentOf(task.Job, ref.By) {
		a.w.mu.Lock()
		defer a.w.mu.Unlock()
		a.w.violate(task.Job, "PAY-2: a task of %s refers to %v, and its agent reads %q, %v", task.Step, ref, text, err)
	}
	if err != nil {
		return agent.NotApplied(err)
	}
	return nil
}

// refers lets some outputs refer to a payload that the agent writes, or says that it has written.
func (a remote) refers(ctx context.Context, r *rand.Rand, task makegood.Task, output json.RawMessage) (json.RawMessage, error) {
	if !oneIn(r, 2) {
		return output, nil
	}
	a.w.mu.Lock()
	missing := a.w.faults.strikes(PayloadMissing, on(task.Job, task.Step, task.Attempt))
	a.w.mu.Unlock()
	if missing {
		a.w.saysFinal(task)
		return withRef(output, refOf("nobody writes this", a.agent)), nil
	}
	ref, err := agent.WritePayload(ctx, "", strings.NewReader(contentOf(task.Job, a.agent)))
	return withRef(output, ref), err
}

// refers: PAY-1. What a job comes to refer to is there, and was kept before the job was saved.
func (c change) refers() {
	if c.large == nil {
		return
	}
	before := c.before.Values()
	for _, p := range c.after.Values() {
		if slices.ContainsFunc(before, func(was job.Payload) bool { return was.Ref == p.Ref && string(was.Inline) == string(p.Inline) }) {
			continue
		}
		value := p.Inline
		if p.Ref != "" {
			value, _ = c.store.Payload(context.Background(), c.after.ID, p.Ref) // what is missing another rule says
		}
		refs, err := domain.FindPayloads(value)
		if err != nil {
			c.wrong("PAY-1: refers to what is no reference: %v", err)
		}
		for _, ref := range refs {
			c.layer.Played(layers.Payloads)
			if !c.large.kept[keptKey{c.after.ID, ref}] {
				c.wrong("PAY-1: refers to %s before anybody has made sure that it is there", fmt.Sprint(ref))
			}
		}
	}
}
