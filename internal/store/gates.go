package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

// Gates keeps the permits that the gates of agents have given out, and the tickets that wait for one. Each write is of
// one permit or one ticket, and conditional, so that those of many processes need no order: internal/gate says which
// to make. A gate without permits and tickets takes no room. An agent has a gate of its own, AGENT, and one for each
// value of the key of its limit, AGENT/VALUE: a value is lower hexadecimal digits. Where a method takes an agent, it
// takes any of these.
type Gates interface {
	// Gate reads all permits of the gate of an agent, by their number, and the first tickets that wait, by their Rank, at
	// most so many: strongly consistent. ErrDamaged.
	Gate(ctx context.Context, agent string, most int) (Gate, error)
	// PutPermit stores a permit in one durable write, if the stored one is was (PermitName): both have the same number,
	// and a free one stands for none. ErrConflict, without a write. A write that is made twice with the same permits
	// succeeds twice.
	PutPermit(ctx context.Context, agent string, was, is job.Permit) error
	// Enter stores a ticket that waits, over one of the same Rank, in one durable write.
	Enter(ctx context.Context, agent string, t job.Ticket) error
	// Leave deletes a ticket that waits, in one durable write. ErrNotFound: none of its Rank does (any more). One of many
	// callers succeeds, unless the first write of a caller was tried again: then none may.
	Leave(ctx context.Context, agent string, t job.Ticket) error
	// Behind reads the first ticket that waits and has a Rank behind a text: strongly consistent. The zero value: there is
	// none. ErrDamaged.
	Behind(ctx context.Context, agent, rank string) (job.Ticket, error)
	// CountWaiting counts the tickets that wait, and stops at most.
	CountWaiting(ctx context.Context, agent string, most int) (int, error)
	// NextGate returns the gate of the value of an agent that has permits or tickets and comes first behind a value, in
	// the order of their bytes: strongly consistent. Empty: there is none.
	NextGate(ctx context.Context, agent, value string) (gate string, err error)
}

// Gate is what stands at the gate of an agent. Its Permits have its tokens, too.
type Gate struct {
	Permits []job.Permit
	Waiting []job.Ticket
}

// PutOver reports whether a PutPermit writes, where the permit stored is put in the place of was. ErrConflict.
func PutOver(stored, was, put job.Permit) (writes bool, err error) {
	switch PermitName(stored) {
	case PermitName(put):
		return false, nil
	case PermitName(was):
		return true, nil
	}
	return false, fmt.Errorf("permit %d: %w", was.N, ErrConflict)
}

// PermitName tells a permit from others of its number: by its ticket and the ticket's Rev, and a token, which an
// attempt may take again, also by when it was taken and whether the attempt was told. Empty: it is free.
func PermitName(p job.Permit) string {
	t := p.Ticket
	switch name := fmt.Sprintf("%s/%s/%d", t.Rank(), t.Birth, t.Rev); {
	case p.Free():
		return ""
	case p.Token():
		return fmt.Sprintf("%s/%d/%t", name, p.At.UnixMilli(), p.Told)
	default:
		return name
	}
}

// EncodePermit writes a permit.
func EncodePermit(p job.Permit) []byte { return encoded(p) }

// EncodeTicket writes a ticket.
func EncodeTicket(t job.Ticket) []byte { return encoded(t) }

func encoded(v any) []byte {
	body, err := json.Marshal(v)
	mustJSON(err)
	return body
}

// DecodePermit reads what EncodePermit writes. ErrDamaged.
func DecodePermit(body []byte) (job.Permit, error) { return decoded[job.Permit](body) }

// DecodeTicket reads what EncodeTicket writes. ErrDamaged.
func DecodeTicket(body []byte) (job.Ticket, error) { return decoded[job.Ticket](body) }

func decoded[T any](body []byte) (v T, err error) {
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("%T: %w: %w", v, ErrDamaged, err)
	}
	return v, nil
}
