package wire

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

const (
	typeAnnouncement = "Announcement"
	typeAgentSilent  = "AgentSilent"
	typeAgentPaused  = "AgentPaused"
)

// announcement is a change of ProcessState on the wire. It carries no payload.
type announcement struct {
	head
	Job          string                `json:"job"`
	Workflow     string                `json:"workflow"`
	Seq          int                   `json:"seq"`
	ProcessState makegood.ProcessState `json:"processState"`
	Reason       string                `json:"reason"`
	At           time.Time             `json:"at"`
}

// agentAlert is an alert about an agent on the wire.
type agentAlert struct {
	head
	Agent  string `json:"agent"`
	Reason string `json:"reason,omitempty"`
}

// EncodeAnnouncement writes an announcement of a job.
func EncodeAnnouncement(job, workflow string, a job.Announcement) (string, error) {
	return encode(announcement{
		head: head{Version, typeAnnouncement}, Job: job, Workflow: workflow,
		Seq: a.Seq, ProcessState: a.ProcessState, Reason: a.Reason, At: a.At,
	})
}

// DecodeAnnouncement reads what EncodeAnnouncement writes. ErrPoison, ErrNewer.
func DecodeAnnouncement(body string) (id, workflow string, a job.Announcement, err error) {
	var m announcement
	if err := decode(body, &m, typeAnnouncement); err != nil {
		return "", "", a, err
	}
	switch {
	case m.Job == "" || m.ProcessState == "":
		return "", "", a, poison("an announcement must name job and processState")
	case m.Seq < 1:
		return "", "", a, poison("seq %d: it counts from 1", m.Seq)
	}
	return m.Job, m.Workflow, job.Announcement{
		Seq: m.Seq, ProcessState: m.ProcessState, Reason: m.Reason, At: domain.Instant(m.At),
	}, nil
}

// EncodeAgentAlert writes the alert that the tasks of an agent are not claimed, or that it was paused, with the reason.
// It goes to operators only, and is not read here.
func EncodeAgentAlert(agent, paused string) (string, error) {
	m := agentAlert{head: head{Version, typeAgentSilent}, Agent: agent, Reason: paused}
	if paused != "" {
		m.Type = typeAgentPaused
	}
	return encode(m)
}
