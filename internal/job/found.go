package job

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
)

// Found is a finding, with the claim that was found, if there was one.
type Found struct {
	Finding Finding
	Claim   Claim
}
