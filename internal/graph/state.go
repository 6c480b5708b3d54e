package graph

import "strings"

// State is how a node looks: its colour and its shape.
type State string

// The states of a node. In SVG each is a class.
const (
	// Idle: not reached, or a step of a workflow that is no job.
	Idle State = ""
	// Pending: an attempt is queued, or is to come.
	Pending    State = "pending"
	Processing State = "processing"
	Processed  State = "processed"
	Error      State = "error"
	Undoing    State = "undoing"
	Undone     State = "undone"
	Cancelled  State = "cancelled"
	Waiting    State = "waiting"
	Paused     State = "paused"
	Skipped    State = "skipped"
)

// look is what a state looks like.
type look struct {
	// class names the class and the symbol of SVG, and word describes it.
	class, word string
	// glyph is its shape on a terminal, one cell wide, and colour its SGR code there.
	glyph  rune
	colour string
	// symbol is the shape in a box of 16 by 16, drawn in currentColor; parts with the class k are cut out.
	symbol string
}

// looks has every state. The shapes differ without colour too.
var looks = map[State]look{
	Idle: {
		"idle", "not reached", '○', "2",
		`<circle cx="8" cy="8" r="3" fill="none" stroke="currentColor" stroke-width="1.6"/>`,
	},
	Pending: {
		"pending", "queued", '◌', "37",
		`<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="2.6 2.1"/>`,
	},
	Processing: {
		"processing", "at work", '◐', "34",
		`<g fill="none" stroke="currentColor" stroke-width="2.4"><circle cx="8" cy="8" r="6" opacity=".28"/><path d="M8 2a6 6 0 0 1 6 6" stroke-linecap="round"/></g>`,
	},
	Processed: {
		"processed", "done", '●', "32",
		`<circle cx="8" cy="8" r="7" fill="currentColor"/><path class="k" d="M4.9 8.3 7 10.4l4.1-4.6"/>`,
	},
	Error: {
		"error", "failed", '◆', "31",
		`<path d="M8 1.2 14.8 8 8 14.8 1.2 8z" fill="currentColor" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round"/><path class="k" d="M8 4.8v3.6M8 11v.1"/>`,
	},
	Undoing: {
		"undoing", "being undone", '◁', "35",
		`<path d="M2.5 8 12.5 2.5v11z" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"/>`,
	},
	Undone: {
		"undone", "undone", '◀', "35",
		`<path d="M2.5 8 12.5 2.5v11z" fill="currentColor" stroke="currentColor" stroke-width="2" stroke-linejoin="round"/>`,
	},
	Cancelled: {
		"cancelled", "withdrawn", '⊘', "37",
		`<g fill="none" stroke="currentColor" stroke-width="2"><circle cx="8" cy="8" r="6"/><path d="m3.8 12.2 8.4-8.4"/></g>`,
	},
	Waiting: {
		"waiting", "waits", '⧖', "33",
		`<path d="M4 2h8L4 14h8L4 2" fill="currentColor" fill-opacity=".3" stroke="currentColor" stroke-width="1.8" stroke-linejoin="round"/>`,
	},
	Paused: {
		"paused", "paused", '‖', "37",
		`<path d="M4 2.5h3v11H4zM9 2.5h3v11H9z" fill="currentColor"/>`,
	},
	Skipped: {
		"skipped", "skipped", '»', "37",
		`<path d="m3 4 4 4-4 4M8.5 4l4 4-4 4" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>`,
	},
}

// states are all states, in the order in which they are explained.
func states() []State {
	return []State{Idle, Pending, Processing, Waiting, Processed, Skipped, Error, Undoing, Undone, Cancelled, Paused}
}

// look returns how a state looks; one that is not known looks idle.
func (s State) look() look {
	if l, known := looks[s]; known {
		return l
	}
	return looks[Idle]
}

// Class is the state's class in SVG and HTML, and the id of its symbol: its name in lower case, idle for Idle.
func (s State) Class() string { return s.look().class }

// word is what the state of a node means.
func (n Node) word() string {
	if n.Word != "" {
		return n.Word
	}
	return n.State.look().word
}

// cutTo shortens a text to so many characters, with a sign that it was.
func cutTo(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return strings.TrimRight(string(runes[:max(0, most-1)]), " ") + "…"
}
