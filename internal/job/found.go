package job

// Finding is what was found out about an attempt by looking at its claim, or by closing it.
type Finding string

const (
	// FoundOpen: nobody has claimed it, and somebody still may.
	FoundOpen Finding = "open"
	// FoundHeld: somebody has claimed it, and its CompleteBy has not passed, or was not looked at.
	FoundHeld Finding = "held"
	// FoundClosed: looking shows that it was closed. Closing it again says how.
	FoundClosed Finding = "closed"
	// FoundNobody: it is closed, and nobody ever claimed it.
	FoundNobody Finding = "nobody"
	// FoundSilent: it is closed, and whoever claimed it did not say in time how it ended.
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
