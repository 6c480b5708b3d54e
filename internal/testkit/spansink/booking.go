package spansink

// Booking is the tree (see Sink.Tree) of a job of the workflow booking, whoever runs it: its charge needs two attempts,
// it waits, and its ticket is refused, so the charge is undone. submitted is the line of its submission.
func Booking(submitted string) []string {
	return []string{
		submitted,
		"charge under submit booking, failed",
		"charge under submit booking, succeeded",
		"end of wait think under submit booking, timeout",
		"ticket under submit booking, failed",
		"turn under submit booking",
		"undo charge under submit booking, succeeded",
		"end booking under submit booking",
	}
}
