package sample

import "fmt"

// Command is one to go on with.
type Command struct {
	// Why is a sentence.
	Why string
	// Line is what to type.
	Line string
}

// Next returns the three commands that a newcomer goes on with. program is how they call the command, addr where its engine
// is (empty: where the command looks by itself); of a version that is not published a project needs the folder of a checkout.
func Next(program, addr string, published bool) []Command {
	at, from := "", ""
	if addr != "" {
		at = " --addr " + addr
	}
	if !published {
		from = " --replace ../makegood"
	}
	return []Command{
		{
			Why:  "Submit one, and wait for its end.",
			Line: fmt.Sprintf("%s submit %s --id o-1 --input '%s' --wait%s", program, Workflow, Input("o-1", 1), at),
		},
		{
			Why:  "Take it back: each step is undone, the last one first.",
			Line: fmt.Sprintf("%s undo o-1 --reason 'the customer called'%s", program, at),
		},
		{
			Why:  "Write your own: a project with three agents, their undo, and tests" + map[bool]string{true: ".", false: "; ../makegood is your checkout."}[published],
			Line: program + " new trips" + from,
		},
	}
}
