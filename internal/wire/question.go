package wire

import (
	"time"
)

const typeQuestion = "Question"

// Question is the message to the people asked to complete a step that waits. It goes to them, and is not read here.
type Question struct {
	Job        string    `json:"job"`
	Workflow   string    `json:"workflow"`
	Step       string    `json:"step"`
	Undo       bool      `json:"undo,omitempty"`
	Round      int       `json:"round"`
	N          int       `json:"n"`
	Since      time.Time `json:"since"`
	Deadline   time.Time `json:"deadline"`
	Text       string    `json:"question,omitempty"`
	Choices    []string  `json:"choices,omitempty"`
	Completion string    `json:"completion"`
	Link       string    `json:"link,omitempty"`
}

// EncodeQuestion writes a question.
func EncodeQuestion(q Question) (string, error) {
	return encode(struct {
		head
		Question
	}{head{Version, typeQuestion}, q})
}
