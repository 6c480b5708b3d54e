package sample

import "fmt"

// Command is one to go on with.
type Command struct {
	// Why is a sentence.
	Why string
	// Line is what to type.
	Line string
}

// Next returns the three commands that a newcomer goes on with. program is how they call the command, addr where its
// engine is (empty: where the command looks by itself); for an unpublished version a project needs a checkout.
func Next(program, addr string, published bool) []Command {
	at, from := "", ""
	if addr != "" {
		at = " --addr " + addr
	}
	if !published {
		from = " --replace ../makegood"
	}
	first := First()
	return []Command{
		{
			Why:  "Submit one, and wait for its end.",
			Line: fmt.Sprintf("%s submit %s --id %s --input '%s' --wait%s", program, first.Workflow, first.ID, first.Input, at),
		},
		{
			Why:  "Take it back: each step is undone, the last one first.",
			Line: fmt.Sprintf("%s undo %s --reason 'the customer called'%s", program, first.ID, at),
		},
		{
			Why:  "Write your own: a project with three agents, their undo, and tests" + map[bool]string{true: ".", false: "; ../makegood is your checkout."}[published],
			Line: program + " new trips" + from,
		},
	}
}
