package wire

import (
	"encoding/json"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// TypeSubmit is the type of a submission by message.
const TypeSubmit = "Submit"

// Submit asks for a job by a message, on the submissions queue where there is one. The same ID with the same content is
// the same job, so the message may be delivered twice.
type Submit struct {
	head
	Workflow string          `json:"workflow"`
	ID       string          `json:"id"`
	Input    json.RawMessage `json:"input"`
	StartAt  time.Time       `json:"startAt,omitzero"`
	ReplyTo  string          `json:"replyTo,omitempty"`
	// Tenant is the tenant of the job, Labels say more about it.
	Tenant string            `json:"tenant,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Priority says how early its attempts pass gates.
	Priority makegood.Priority `json:"priority,omitempty"`
	// Traceparent is the span under which the job is submitted, as the W3C's header of that name has it.
	Traceparent string `json:"traceparent,omitempty"`
}

// EncodeSubmit writes a submission.
func EncodeSubmit(s Submit) (string, error) {
	s.head = head{Version, TypeSubmit}
	return encode(s)
}

func decodeSubmit(body string) (Incoming, error) {
	var s Submit
	if err := decode(body, &s, TypeSubmit); err != nil {
		return Incoming{}, err
	}
	if s.Workflow == "" || s.ID == "" {
		return Incoming{}, poison("a submission must name workflow and id")
	}
	s.StartAt = domain.Instant(s.StartAt)
	return Incoming{Job: s.ID, Submit: &s}, nil
}
