// Package wire is how tasks, events and jobs are written: versioned JSON. docs/messages.md describes the messages for
// agents that are not written in Go.
//
// # Two releases on one queue
//
// A reader ignores the fields that it does not know, and leaves (ErrNewer, Leave) the messages that it does not know.
// All else that it cannot read is poison. Names are read as encoding/json reads them: in any case, and of a name that
// is there twice the last counts; so no release may distinguish two fields by their case.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Version is the version of the messages that this code writes, and the only one that it reads.
const Version = 1

// ErrPoison: the message can never be understood. It goes into quarantine with the reason.
var ErrPoison = errors.New("poison message")

// The types of message that are read here.
const (
	typeTask = "Task"
	// typeSecretTask is a task that has secrets. A release of before does not know it, and leaves it: it would run the
	// task without them.
	typeSecretTask     = "SecretTask"
	typeSubmitted      = "Submitted"
	typeStepSucceeded  = "StepSucceeded"
	typeStepFailed     = "StepFailed"
	typeStepWaiting    = "StepWaiting"
	typeStepHeld       = "StepHeld"
	typeStepCompleted  = "StepCompleted"
	typeWaitExtended   = "WaitExtended"
	typeDeadlinePassed = "DeadlinePassed"
	typeChildEnded     = "ChildEnded"
	typeAdmitted       = "Admitted"
	typeScheduleDue    = "ScheduleDue"
	typeHoldsDue       = "HoldsDue"
)

// head is what every message begins with.
type head struct {
	V    int    `json:"v"`
	Type string `json:"type"`
}

func (h head) said() head { return h }

// task is a task on the wire. Times are RFC 3339 in UTC, durations whole milliseconds.
type task struct {
	head
	Job      string          `json:"job"`
	Workflow string          `json:"workflow"`
	Step     string          `json:"step"`
	Round    int             `json:"round"`
	Attempt  int             `json:"attempt"`
	Agent    string          `json:"agent"`
	Action   string          `json:"action"`
	Input    json.RawMessage `json:"input"`
	Batch    []int           `json:"batch,omitempty"`
	Secrets  []taskSecret    `json:"secrets,omitempty"`
	Key      string          `json:"key"`
	SentAt   time.Time       `json:"sentAt"`
	StartBy  time.Time       `json:"startBy"`
	// TimeoutMs is how long the attempt may be silent, which is all that a release without heartbeats knows; TotalMs, where
	// it is there, how long it may take in all.
	TimeoutMs  int64     `json:"timeoutMs"`
	TotalMs    int64     `json:"totalMs,omitempty"`
	Exclusive  bool      `json:"exclusive"`
	CompleteBy time.Time `json:"completeBy,omitzero"`
	Undo       *undoTask `json:"undo,omitempty"`
	ReplyTo    string    `json:"replyTo"`
	// Birth is part of the name of the claim item, and ClaimUntil until when there can be a claim.
	Birth      string    `json:"birth"`
	ClaimUntil time.Time `json:"claimUntil"`
	Token      string    `json:"token"`
	Completion string    `json:"completion,omitempty"`
	// Alone is a wish that a release before does not know: it counts its silence as it always did.
	Alone bool `json:"alone,omitempty"`
	// Traceparent is a wish, too.
	Traceparent string `json:"traceparent,omitempty"`
}

type taskSecret struct {
	Path string `json:"path"`
	At   int    `json:"at"`
	Name string `json:"name"`
}

type undoTask struct {
	ForwardKey string           `json:"forwardKey"`
	Repeats    int              `json:"repeats,omitempty"`
	Outcome    makegood.Outcome `json:"outcome"`
	Output     json.RawMessage  `json:"output"`
}

// event is anything on the events queue.
type event struct {
	head
	Job       string          `json:"job"`
	Step      string          `json:"step,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Token     string          `json:"token,omitempty"`
	LockedBy  string          `json:"lockedBy,omitempty"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *replyError     `json:"error,omitempty"`
	Key       time.Time       `json:"key,omitzero"`
	// Deadline is that of a step that waits: given by its agent, or moved by the holder of its completion token.
	Deadline time.Time `json:"deadline,omitzero"`
	// Completion is the completion token, which names its own job and step; Request names the asking.
	Completion string `json:"completion,omitempty"`
	Request    string `json:"request,omitempty"`
	// Spent is the usage of a reply's attempt so far; absent: the agent does not count. It is read apart: a fault in it is
	// no reason to lose a reply.
	Spent json.RawMessage `json:"spent,omitempty"`
}

// Incoming is what a message on the events queue says: an event of a job, a submission, or that a schedule is due.
type Incoming struct {
	Job    string
	Event  job.Event
	Submit *Submit
	// Schedule is set by the hint that a schedule is due, and no other field then.
	Schedule *ScheduleDue
	// HoldsDue is set, and no other field then, by the hint that held jobs are to go on: the key that was seen.
	HoldsDue *time.Time
	// Spent is the usage of the attempt that the reply is for, as the agent reports it; nil: it does not.
	Spent *job.Spent
	// Repeats: with ErrNewer, the sender repeats this as long as it is so. To leave it would multiply it.
	Repeats bool
}

// DecodeIncoming reads a message of the events queue. ErrPoison, ErrNewer.
func DecodeIncoming(body string) (Incoming, error) {
	switch typeOf(body) {
	case TypeSubmit:
		return decodeSubmit(body)
	case typeScheduleDue:
		due, err := decodeScheduleDue(body)
		if err != nil {
			return Incoming{Repeats: errors.Is(err, errNewerDeadline)}, err
		}
		return Incoming{Schedule: &due}, nil
	case typeHoldsDue:
		key, err := decodeHoldsDue(body)
		if err != nil {
			return Incoming{Repeats: errors.Is(err, errNewerDeadline)}, err
		}
		return Incoming{HoldsDue: &key}, nil
	default:
		// This gives the best error for any fault in it.
		m, job, e, err := decodeEvent(body)
		return Incoming{Job: job, Event: e, Spent: spentOf(m), Repeats: errors.Is(err, errNewerDeadline)}, err
	}
}

// typeOf returns the type of a message that may be no event; empty for one that must be, which is not read twice.
func typeOf(body string) string {
	var kind head
	if !strings.Contains(body, TypeSubmit) && !strings.Contains(body, typeScheduleDue) && !strings.Contains(body, typeHoldsDue) || json.Unmarshal([]byte(body), &kind) != nil {
		return ""
	}
	return kind.Type
}

type replyError struct {
	Message      string           `json:"message"`
	Retryable    bool             `json:"retryable"`
	Kind         string           `json:"kind,omitempty"`
	Applied      makegood.Applied `json:"applied"`
	RetryAfterMs int64            `json:"retryAfterMs,omitempty"`
	SlowDown     bool             `json:"slowDown,omitempty"`
}

// EncodeTask writes a task.
func EncodeTask(t makegood.Task) (string, error) {
	m := task{
		head: head{Version, typeTask},
		Job:  t.Job, Workflow: t.Workflow, Step: t.Step, Round: t.Round, Attempt: t.Attempt,
		Agent: t.Agent, Action: t.Action, Input: t.Input, Batch: t.Batch, Key: t.Key,
		SentAt: t.SentAt, StartBy: t.StartBy, TimeoutMs: domain.Silence(t).Std().Milliseconds(),
		Exclusive: !t.Shared, CompleteBy: t.CompleteBy, ReplyTo: t.ReplyTo,
		Birth: t.Birth, ClaimUntil: t.ClaimUntil, Token: t.Token, Completion: t.Completion, Alone: t.Alone, Traceparent: t.Traceparent,
	}
	for _, s := range t.Secrets {
		m.Type = typeSecretTask
		m.Secrets = append(m.Secrets, taskSecret(s))
	}
	if t.Heartbeat > 0 {
		m.TotalMs = t.Timeout.Std().Milliseconds()
	}
	if t.Undo != nil {
		undo := undoTask(*t.Undo)
		m.Undo = &undo
	}
	body, ok := m.quickly()
	var err error
	if !ok {
		body, err = encode(m)
	}
	if err == nil && len(body) > 2*maxNesting && !json.Valid([]byte(body)) {
		// Each value was JSON by itself. Releases before this one took outputs that are nested as deep as a reader goes.
		return "", fmt.Errorf("the task is nested deeper than %d", maxNesting)
	}
	return body, err
}

// maxNesting is how deep a message may be nested that encoding/json reads.
const maxNesting = 10_000

// DecodeTask reads what EncodeTask writes. ErrPoison, ErrNewer.
func DecodeTask(body string) (makegood.Task, error) {
	var m task
	if err := decode(body, &m, typeTask, typeSecretTask); err != nil {
		return makegood.Task{}, err
	}
	switch {
	case m.Job == "" || m.Step == "" || m.Agent == "" || m.Action == "" || m.Key == "" || m.ReplyTo == "":
		return makegood.Task{}, poison("a task must name job, step, agent, action, key and replyTo")
	case domain.CheckJobID(m.Job) != nil:
		// No reply could name it.
		return makegood.Task{}, poison("the job's id %v", domain.CheckJobID(m.Job))
	case m.Attempt < 1 || m.Round < 1:
		return makegood.Task{}, poison("attempt %d, round %d: both count from 1", m.Attempt, m.Round)
	case m.TimeoutMs < 1 || m.TimeoutMs > limits.MaxTimeout.Milliseconds():
		return makegood.Task{}, poison("timeoutMs %d: want 1 to %d", m.TimeoutMs, limits.MaxTimeout.Milliseconds())
	case m.TotalMs != 0 && (m.TotalMs < m.TimeoutMs || m.TotalMs > limits.MaxClaim.Milliseconds()):
		return makegood.Task{}, poison("totalMs %d: want timeoutMs to %d", m.TotalMs, limits.MaxClaim.Milliseconds())
	case m.TotalMs != 0 && !m.Exclusive:
		return makegood.Task{}, poison("a task that is not exclusive has no totalMs: its agent sends no heartbeats")
	case !m.Exclusive && m.CompleteBy.IsZero():
		return makegood.Task{}, poison("a task that is not exclusive must carry completeBy")
	case m.Birth == "" || m.Token == "" || m.ClaimUntil.IsZero():
		return makegood.Task{}, poison("a task must carry birth, claimUntil and token")
	case len(m.Batch) > limits.MaxBatchItems:
		return makegood.Task{}, poison("a batch of %d items, the limit is %d", len(m.Batch), limits.MaxBatchItems)
	case m.Undo != nil && m.Undo.Repeats < 0:
		return makegood.Task{}, poison("the step was repeated %d times", m.Undo.Repeats)
	case len(m.Secrets) > limits.MaxTaskSecrets || (len(m.Secrets) > 0) != (m.Type == typeSecretTask):
		return makegood.Task{}, poison("%d secrets of a %s: want 1 to %d of a %s, and none else",
			len(m.Secrets), m.Type, limits.MaxTaskSecrets, typeSecretTask)
	}
	t := makegood.Task{
		Job: m.Job, Workflow: m.Workflow, Step: m.Step, Round: m.Round, Attempt: m.Attempt,
		Agent: m.Agent, Action: m.Action, Input: m.Input, Batch: m.Batch, Key: m.Key,
		SentAt: domain.Instant(m.SentAt), StartBy: domain.Instant(m.StartBy),
		Timeout: makegood.Duration(m.TimeoutMs) * makegood.Millisecond,
		Shared:  !m.Exclusive, CompleteBy: domain.Instant(m.CompleteBy), ReplyTo: m.ReplyTo,
		Birth: m.Birth, ClaimUntil: domain.Instant(m.ClaimUntil), Token: m.Token, Completion: m.Completion, Alone: m.Alone, Traceparent: m.Traceparent,
	}
	for _, s := range m.Secrets {
		if err := limits.SecretName.Check(s.Name); err != nil {
			return makegood.Task{}, poison("%v", err)
		}
		t.Secrets = append(t.Secrets, makegood.TaskSecret(s))
	}
	if m.TotalMs != 0 {
		t.Heartbeat, t.Timeout = t.Timeout, makegood.Duration(m.TotalMs)*makegood.Millisecond
	}
	if m.Undo != nil {
		undo := makegood.UndoTask(*m.Undo)
		t.Undo = &undo
	}
	return t, nil
}

// EncodeEvent writes an event of a job. Only replies, deadlines and submissions cross a queue: the Scheduler's events
// to itself, and people's requests, have no form on the wire, so no sender of messages can forge them.
func EncodeEvent(id string, e job.Event) (string, error) { return encodeEvent(id, e, nil) }

// EncodeReply writes an agent's reply, with what its attempt has cost so far.
func EncodeReply(id string, e job.Event, spent job.Spent) (string, error) {
	if !spent.Counted() {
		return encodeEvent(id, e, nil)
	}
	text, err := json.Marshal(spent)
	if err != nil {
		return "", err
	}
	return encodeEvent(id, e, text)
}

func encodeEvent(id string, e job.Event, spent json.RawMessage) (string, error) {
	m := event{head: head{V: Version}, Job: id, Spent: spent}
	switch e := e.(type) {
	case job.Submitted:
		m.Type = typeSubmitted
	case job.StepSucceeded:
		m.Type = typeStepSucceeded
		m.reply(e.Reply)
		m.Output = e.Output.Inline
	case job.StepFailed:
		m.Type = typeStepFailed
		m.reply(e.Reply)
		m.Error = &replyError{
			Message: e.Error.Message, Retryable: e.Error.Retryable, Kind: e.Error.Kind, Applied: e.Error.Applied,
			RetryAfterMs: e.Error.RetryAfter.Std().Milliseconds(), SlowDown: e.Error.SlowDown,
		}
	case job.StepWaiting:
		m.Type, m.Deadline = typeStepWaiting, e.Deadline
		m.reply(e.Reply)
	case job.StepHeld:
		m.Type = typeStepHeld
		m.reply(e.Reply)
	case job.StepCompleted:
		m.Type, m.Completion, m.Request, m.Output = typeStepCompleted, e.Token, e.Request, e.Output.Inline
		if e.Error != nil {
			m.Output, m.Error = nil, &replyError{Message: e.Error.Message, Retryable: e.Error.Retryable, Applied: e.Error.Applied}
		}
	case job.WaitExtended:
		m.Type, m.Completion, m.Deadline = typeWaitExtended, e.Token, e.Until
	case job.DeadlinePassed:
		m.Type, m.Key = typeDeadlinePassed, e.Key
	case job.ChildEnded:
		m.Type, m.Step, m.Attempt = typeChildEnded, e.Step, e.Attempt
	case job.Admitted:
		m.Type, m.Step, m.Attempt = typeAdmitted, e.Step, e.Attempt
	default:
		panic(fmt.Sprintf("wire: %T does not cross a queue", e))
	}
	if body, ok := m.quickly(); ok {
		return body, nil
	}
	return encode(m)
}

func (m *event) reply(r job.Reply) {
	m.Step, m.Attempt, m.Token, m.LockedBy, m.StartedAt = r.Step, r.Attempt, r.Token, r.LockedBy, r.StartedAt
}

// DecodeEvent reads what EncodeEvent writes. ErrPoison, ErrNewer.
func DecodeEvent(body string) (id string, e job.Event, err error) {
	_, id, e, err = decodeEvent(body)
	return id, e, err
}

func decodeEvent(body string) (m event, id string, e job.Event, err error) {
	if err := decode(body, &m, typeSubmitted, typeStepSucceeded, typeStepFailed, typeStepWaiting, typeStepHeld, typeStepCompleted, typeWaitExtended, typeDeadlinePassed, typeChildEnded, typeAdmitted); err != nil {
		return m, "", nil, err
	}
	id, e, err = eventOf(m)
	return m, id, e, err
}

// eventOf returns what a message says that is of a type which is known.
func eventOf(m event) (id string, e job.Event, err error) {
	if m.Type == typeStepCompleted || m.Type == typeWaitExtended {
		return decodeCompletion(m)
	}
	if m.Job == "" {
		return "", nil, poison("an event must name its job")
	}
	switch m.Type {
	case typeSubmitted:
		return m.Job, job.Submitted{}, nil
	case typeStepSucceeded, typeStepFailed, typeStepWaiting, typeStepHeld:
		return decodeReply(m)
	case typeChildEnded:
		return m.Job, job.ChildEnded{Step: m.Step, Attempt: m.Attempt}, nil
	case typeAdmitted:
		return m.Job, job.Admitted{Step: m.Step, Attempt: m.Attempt}, nil
	case typeDeadlinePassed:
		return m.Job, job.DeadlinePassed{Key: domain.Instant(m.Key)}, nil
	default:
		panic(fmt.Sprintf("wire: an event of type %q", m.Type))
	}
}

func decodeReply(m event) (string, job.Event, error) {
	if m.Step == "" || m.Attempt < 1 {
		return "", nil, poison("a reply must name its step, and its attempt, which counts from 1")
	}
	startedAt, err := instant("startedAt", m.StartedAt)
	if err != nil {
		return "", nil, err
	}
	reply := job.Reply{Step: m.Step, Attempt: m.Attempt, Token: m.Token, LockedBy: m.LockedBy, StartedAt: startedAt}
	if m.Type == typeStepSucceeded {
		if m.Error != nil {
			return "", nil, poison("StepSucceeded with an error")
		}
		return m.Job, job.StepSucceeded{Reply: reply, Output: Inline(m.Output)}, nil
	}
	if m.Type == typeStepWaiting {
		deadline, err := instant("deadline", m.Deadline)
		return m.Job, job.StepWaiting{Reply: reply, Deadline: deadline}, err
	}
	if m.Type == typeStepHeld {
		return m.Job, job.StepHeld{Reply: reply}, nil
	}
	if m.Error == nil {
		return "", nil, poison("StepFailed without an error")
	}
	return m.Job, job.StepFailed{Reply: reply, Error: m.failure()}, nil
}

// instant reads a time that JSON can write again: an offset may carry it out of the years that JSON has.
func instant(name string, t time.Time) (time.Time, error) {
	t = domain.Instant(t)
	if _, err := t.MarshalJSON(); err != nil {
		return t, poison("%s: %v", name, err)
	}
	return t, nil
}

// failure is the error of a reply or a completion.
func (m event) failure() job.StepError {
	failure := job.StepError{
		Message: limits.Clip(m.Error.Message), Retryable: m.Error.Retryable, SlowDown: m.Error.SlowDown, Applied: makegood.AppliedUnknown,
		RetryAfter: makegood.Duration(min(max(0, m.Error.RetryAfterMs), maxMillis)) * makegood.Millisecond,
	}
	if limits.ErrorKind.Check(m.Error.Kind) == nil {
		// A kind that is none is left out: no reply should be lost for a name.
		failure.Kind = m.Error.Kind
	}
	if m.Error.Applied == makegood.AppliedNo {
		failure.Applied = makegood.AppliedNo
	}
	return failure
}

// maxMillis is how many milliseconds a duration can be. One more would make it negative.
const maxMillis = math.MaxInt64 / int64(makegood.Millisecond)

// Inline makes a payload of a JSON value, without white space, so that it is stored byte for byte; null and an empty
// value are the zero payload.
func Inline(value json.RawMessage) job.Payload {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err == nil {
		value = compact.Bytes()
	}
	if len(value) == 0 || string(value) == "null" {
		return job.Payload{}
	}
	return job.Payload{Inline: value, Bytes: len(value)}
}

// message is a struct that is written with its head.
type message interface{ said() head }

// decode reads a message of one of these types into m, which points to it. ErrPoison, ErrNewer.
func decode(body string, m message, types ...string) error {
	if len(body) > limits.MaxMessageBytes {
		return poison("%d bytes, the limit is %d", len(body), limits.MaxMessageBytes)
	}
	if !utf8.ValidString(body) {
		return poison("not UTF-8")
	}
	err := read(body, m)
	if h := m.said(); err == nil && h.V == Version && slices.Contains(types, h.Type) {
		return nil
	}
	// A later version may give any field but these two another kind.
	var h head
	if headErr := read(body, &h); headErr != nil {
		return poison("%v", headErr)
	}
	if judged := judge(h, types); judged != nil {
		return judged
	}
	return poison("%v", err)
}

// read reads one JSON value, and ignores the fields that it does not know.
func read(body string, m any) error {
	if json.Unmarshal([]byte(body), m) == nil {
		return nil
	}
	// A fault in it, and the part before the fault, are reported as ever.
	d := json.NewDecoder(strings.NewReader(body))
	if err := d.Decode(m); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the message")
	}
	return nil
}

func poison(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPoison, fmt.Sprintf(format, args...))
}
