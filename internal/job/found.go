package job

import "github.com/makegood-dev/makegood"

// Finding is the result of a look at an attempt's claim, or of its closing.
type Finding string

const (
	// FoundOpen: it is not claimed, and still may be.
	FoundOpen Finding = "open"
	// FoundHeld: it is claimed, and its CompleteBy has not passed, or was not looked at.
	FoundHeld Finding = "held"
	// FoundClosed: looking shows that it was closed. Closing it again says how.
	FoundClosed Finding = "closed"
	// FoundNobody: it is closed, and was never claimed.
	FoundNobody Finding = "nobody"
	// FoundSilent: it is closed, and its holder did not say in time how it ended.
	FoundSilent Finding = "silent"
	// FoundReplied: it is closed by the failure that its claim's holder replied.
	FoundReplied Finding = "replied"
	// FoundOver: the claim is of a newer attempt. It was not touched.
	FoundOver Finding = "over"
	// FoundEnded: the child that does the attempt has ended. Of an undo: the child is undone.
	FoundEnded Finding = "ended"
	// FoundAdmitted: the attempt has a permit of the gate of its agent. FoundQueued: it waits for one.
	FoundAdmitted Finding = "admitted"
	FoundQueued   Finding = "queued"
)

// Found is a finding, with the claim that was found, if there was one. Child is set with FoundEnded alone.
//
// Of an attempt that a child does, the child stands where the claim of another would: FoundOpen says that it was not
// begun, or not yet asked to undo itself, FoundHeld that it is under way, and FoundNobody that it never can begin.
type Found struct {
	Finding Finding
	Claim   Claim
	Child   *ChildEnd
	// Refused is why items that were named are not redriven; empty: all of them have failed.
	Refused string
}

// ChildEnd is how a child has ended. It is never changed.
type ChildEnd struct {
	// State is Processed, Undone or Cancelled; empty: the child is not stored any more.
	State makegood.ProcessState
	// Output is that of the last of its steps, in their order, that was done; Reason is the reason of its end. Unfit says
	// why its parent cannot have that output; empty: it can.
	Output        Payload
	Reason, Unfit string
	// Failed is how many items have failed, where the child does those of a map.
	Failed int
}

// Silence returns the claim of the last attempt that ended in silence; the zero value: none did.
func (a *Activity) Silence() Claim {
	if a.Silent == nil {
		return Claim{}
	}
	return *a.Silent
}
