package wire

import (
	"time"
)

const typeQuestion = "Question"

// Question is the message to the people asked to complete a step that waits. It goes to them, and is not read here.
type Question struct {
	Job, Workflow, Step string
	Undo                bool
	Round, N            int
	Since, Deadline     time.Time
	Text                string
	Choices             []string
	Completion, Link    string
}

// question is a Question on the wire.
type question struct {
	head
	Job        string    `json:"job"`
	Workflow   string    `json:"workflow"`
	Step       string    `json:"step"`
	Undo       bool      `json:"undo,omitempty"`
	Round      int       `json:"round"`
	N          int       `json:"n"`
	Since      time.Time `json:"since"`
	Deadline   time.Time `json:"deadline"`
	Question   string    `json:"question,omitempty"`
	Choices    []string  `json:"choices,omitempty"`
	Completion string    `json:"completion"`
	Link       string    `json:"link,omitempty"`
}

// EncodeQuestion writes a question.
func EncodeQuestion(q Question) (string, error) {
	return encode(question{
		head: head{Version, typeQuestion}, Job: q.Job, Workflow: q.Workflow, Step: q.Step, Undo: q.Undo, Round: q.Round, N: q.N,
		Since: q.Since, Deadline: q.Deadline, Question: q.Text, Choices: q.Choices, Completion: q.Completion, Link: q.Link,
	})
}
