package makegood

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Workflow is the description of a kind of job: named steps, the agents that do them, how long they may take, how they
// are undone. It is data; a job keeps the workflow that it started with, by its hash. Fields left out have the default
// that their comments name.
type Workflow struct {
	// Name is [a-z][a-z0-9-]{0,62}.
	Name string `json:"name"`
	// Timeout is how long the whole job may go forward; zero: as long as it takes. It never stops an undo.
	Timeout Duration `json:"timeout,omitzero"`
	// Expect is the expected duration of a job, counted as its Timeout is; zero: none. An operator is told of a job that
	// will take longer, once a round; it has no other effect.
	Expect Duration `json:"expect,omitzero"`
	// OnFailure is the reaction when a step is given up. Default: undo where any step has one, else stop.
	OnFailure OnFailure `json:"onFailure"`
	// Input is the JSON Schema (draft 2020-12) that the input of a job must fit, at most 64 KiB. Empty: any input
	// does.
	Input json.RawMessage `json:"input,omitempty"`
	// Steps are in the order in which they were written; at most 200.
	Steps []Step `json:"steps"`
	// Part, if set, says that the steps are items of a map, or parts of one. No file has it: it follows from a Map.
	Part *Part `json:"part,omitempty"`
}

// Step is one unit of work of a workflow.
type Step struct {
	// Name is [a-z][a-z0-9_]{0,62} and unique in its workflow.
	Name string `json:"name"`
	// Agent is the agent that gets the task in its queue, [A-Za-z][A-Za-z0-9_-]{0,62}; "http" is built in.
	Agent string `json:"agent"`
	// Action is the action of the agent, [A-Za-z][A-Za-z0-9_-]{0,62}. Default: the step's name.
	Action string `json:"action"`
	// Needs names the steps that must be done or skipped before this one starts. Nil means the step
	// above; empty means none.
	Needs []string `json:"needs"`
	// Any: one step of Needs suffices, the first that is done. The others go on, and end before the job does. Where none
	// is done when all have ended, the step is skipped.
	Any bool `json:"any,omitempty"`
	// Only is another way for a step to begin than by its Needs: OnlyOnError, when another step goes to it. Empty: by its
	// Needs.
	Only string `json:"only,omitempty"`
	// When is an expression "${ ... }" with the value true or false; false skips the step. Empty: always.
	When string `json:"when,omitempty"`
	// With is the task's input: JSON with strings that may hold expressions. Empty: the job's input.
	With json.RawMessage `json:"with,omitempty"`
	// StartBy is how long a task may wait unclaimed before it is sent again. Default: 10m.
	StartBy Duration `json:"startBy"`
	// Timeout is CompleteBy of an attempt, counted from its claim. Default: 30s. With a Heartbeat it is how long the
	// attempt may take in all, up to 30 days, which is then the default.
	Timeout Duration `json:"timeout"`
	// Heartbeat is how long the agent may be silent while it works on an attempt: each heartbeat moves CompleteBy on to
	// that long from then, never past Timeout. Zero: Timeout is the limit of silence, and heartbeats may move CompleteBy
	// up to 30 days from the claim.
	Heartbeat Duration `json:"heartbeat,omitzero"`
	// Shared is the opposite of exclusive in a file, true for "exclusive: false", so that the zero value is the default:
	// attempts are not claimed, and may run more than once. The statement of an attempt that it has not applied anything
	// covers only that attempt, so the outcome counts as unknown.
	Shared bool `json:"shared,omitempty"`
	// Inline: an attempt that falls silent may have had its effect, and is undone like any other. The attempts of the step,
	// and of its undo, run in the process that decides about the job, where its agent is linked into that process: they
	// need no message, no claim and no reply. Elsewhere, and whenever something stands in the way (all places of the agent
	// are taken, too little time is left of the invocation, the attempt is to run alone), an attempt goes through the
	// agent's queue. Not for a step with a Heartbeat.
	Inline bool `json:"inline,omitempty"`
	// Retry says how retryable failures are tried again.
	Retry Retry `json:"retry"`
	// OnError has the reactions to errors of the step, not of its undo, by their kind; at most 20. An error that no route
	// matches ends as the workflow's OnFailure says.
	OnError []ErrorRoute `json:"onError,omitempty"`
	// OnAnswer has the reactions to answers of an approval, by the answer, each one of its choices. After an answer that
	// is not listed the job goes on.
	OnAnswer map[string]AnswerDo `json:"onAnswer,omitempty"`
	// Repeat, if set, does the step again until it is ready.
	Repeat *Repeat `json:"repeat,omitempty"`
	// Undo is the step's compensation. Nil: the step declares none.
	Undo *Undo `json:"undo,omitempty"`
	// Waiting has the rules for the step's wait. Nil: the step asks no questions, and its deadline is a failure.
	Waiting *WaitRules `json:"waiting,omitempty"`
	// Map does the step once for each item of a list. Nil: the step is done once.
	Map *Map `json:"map,omitempty"`
}

// Map does a step once for each item of a list. The items are steps of jobs of their own, the parts of the map, 100 in
// each. The other fields of the step, but for Needs, Any, Only, When and OnError, are those of each item, and
// its With sees the item as .item, and its place in the list, from 0, as .index. The undo of the step undoes each item
// that was done.
type Map struct {
	// Over is an expression "${ ... }" that gives the list, of at most MaxItems items. It is evaluated once, when the
	// step begins. The inputs of the items of one part have at most MaxPayloadBytes together, as JSON, and the expressions
	// of all items take at most 100,000,000 steps together.
	Over string `json:"over,omitempty"`
	// Concurrency is how many items are under way at once at most, 1 to 10,000. Above 100 it is rounded down to hundreds.
	// Default: 100.
	Concurrency int `json:"concurrency,omitempty"`
	// Batch is how many items are one task, 1 to 50. Its agent answers for each item, and only items that failed are
	// tried again (Task.Batch). Default: 1.
	Batch int `json:"batch,omitempty"`
	// Tolerate is how many items may fail before the step has failed. Default: none may.
	Tolerate Tolerance `json:"tolerate,omitzero"`
	// Outputs is the form of the output of the step. Default: OutputsList.
	Outputs MapOutputs `json:"outputs,omitempty"`
	// Item is the step of an item, once defaults are filled in. Leave it out.
	Item *Step `json:"item,omitempty"`
	// Count is the number of items, of a step that is a part. Leave it out.
	Count int `json:"count,omitempty"`
}

// Tolerance is how many items of a map may fail. With both Items and Share, the smaller number counts.
type Tolerance struct {
	// Items is how many may fail. 0: Share alone is the limit; without a Share, none may fail.
	Items int `json:"items,omitempty"`
	// Share is the part of the ended items that may have failed, above 0 and below 1. It counts once After have ended.
	Share float64 `json:"share,omitempty"`
	After int     `json:"after,omitempty"`
}

// MapOutputs is the form of the output of a step with a Map.
type MapOutputs string

// The forms.
const (
	// OutputsList: the outputs of the items, in their order, null for one that has failed. Where that has more than
	// MaxPayloadBytes as JSON, or refers to a large payload, it is OutputsManifest.
	OutputsList MapOutputs = "list"
	// OutputsManifest: {"items": N, "failed": N, "parts": [{"job": ID, "from": INDEX, "items": N, "failed": N}]}, with at
	// most 100 parts. The outputs are those of the steps of these jobs.
	OutputsManifest MapOutputs = "manifest"
)

// Part is how the steps of a part of a map are done.
type Part struct {
	// Of is the step with the Map.
	Of string `json:"of"`
	// Items is how many there are.
	Items int `json:"items"`
	// Concurrency is how many steps are under way at once at most.
	Concurrency int `json:"concurrency"`
	// Batch is how many items each step does, but for the last; 0: one.
	Batch int `json:"batch,omitempty"`
	// Tolerate is that of the Map.
	Tolerate Tolerance `json:"tolerate,omitzero"`
}

// WaitRules name the receivers of a waiting step's question, and the meaning of its deadline.
type WaitRules struct {
	// Ask are the registered names of the receivers that are told of the wait when it begins; at most 10. They get its
	// completion token, and so may answer.
	Ask []string `json:"ask,omitempty"`
	// Remind says how long after the wait began they are reminded; at most 10, each later than the one before.
	Remind []Duration `json:"remind,omitempty"`
	// Escalate, if set, says when further receivers get the question, and reminders from then on.
	Escalate *Escalate `json:"escalate,omitempty"`
	// OnTimeout is the meaning of its deadline. Nil: the attempt has failed, and may be tried again.
	OnTimeout *OnTimeout `json:"onTimeout,omitempty"`
}

// Escalate names further receivers of a question, and how long after the wait began they get it.
type Escalate struct {
	After Duration `json:"after"`
	Ask   []string `json:"ask"`
}

// OnTimeout is the meaning of a waiting step's deadline: the step is done, with an output.
type OnTimeout struct {
	// Output is JSON of at most 256 bytes.
	Output json.RawMessage `json:"output"`
}

// The built-in agents that never get a task: the step waits, and no agent works on it.
const (
	// AgentWait waits: for a duration, or until a time.
	AgentWait = "wait"
	// AgentApproval waits for an answer, one of several.
	AgentApproval = "approval"
)

// AgentWorkflow is the built-in agent of a step that is done by a job of its own, its child: the action of the step is
// the name of the child's workflow, its with is the child's input, and its output that of the last step of the child
// that was done. The undo of the step is the undo of the child, unless it says undo: none.
const AgentWorkflow = "workflow"

// Undo is the compensation of a step. Fields left out are those of its step, except Action. Timeout and Heartbeat are
// one thing here: an undo with either takes neither from its step.
type Undo struct {
	// None is "undo: none": the step is knowingly irreversible, and no other field is set.
	None    bool            `json:"none,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	Action  string          `json:"action,omitempty"`
	With    json.RawMessage `json:"with,omitempty"`
	StartBy Duration        `json:"startBy,omitzero"`
	Timeout Duration        `json:"timeout,omitzero"`
	// Heartbeat: as of a step.
	Heartbeat Duration `json:"heartbeat,omitzero"`
	Retry     Retry    `json:"retry,omitzero"`
	// Waiting has the rules for the undo's wait. It does not default to that of its step.
	Waiting *WaitRules `json:"waiting,omitempty"`
}

// Retry is exponential backoff with full jitter: the n-th retry comes after a random part of min(Max, Backoff *
// 2^(n-1)). It ends by whichever comes first, Attempts or For. A Retry with neither has a For of 15 minutes, or of 1
// hour for an undo if its step has neither, too; less where a short Max would take more than 100 attempts.
type Retry struct {
	// Attempts counts the first one too; 1 to 100. Default: 100 where For is given, too.
	Attempts int `json:"attempts"`
	// For is how long after the first failure another attempt is made; the last comes when it is over, so the step
	// outlives a shorter outage. Time without a chance to try is left out: a pause, an engine that was down, a task that
	// no agent took. At most 7 days. Zero: as long as there are attempts, where Attempts is given.
	For Duration `json:"for,omitzero"`
	// Backoff is the longest wait before the first retry. Default: 1s.
	Backoff Duration `json:"backoff"`
	// Max is the longest wait before any retry; a remote's Retry-After is kept up to it. Default: 1m, or a thirtieth of
	// For where that is more.
	Max Duration `json:"max"`
}

// OnFailure is the reaction when a step is given up.
type OnFailure struct {
	Action FailureAction
	// Wait is how long FailureWait waits before the step is granted fresh attempts, and FailureRestart before it begins
	// the next round. The default of the latter is 10 seconds.
	Wait Duration
	// Rounds is how many rounds FailureRestart makes at most, the first one counted too; 2 to 100.
	Rounds int
}

// FailureAction is one of undo, stop, wait and restart.
type FailureAction string

// The ways to go on when a step is given up.
const (
	FailureUndo FailureAction = "undo" // undo the work done
	FailureStop FailureAction = "stop" // Error, and an operator is told
	FailureWait FailureAction = "wait" // wait and try the step again
	// FailureRestart: undo the work done, then try again from the start in a new round. A job that has used up its
	// rounds ends Undone.
	FailureRestart FailureAction = "restart"
)

// String writes o as a workflow file does: undo, stop, wait 1h0m0s, restart 3 wait 10s.
func (o OnFailure) String() string {
	switch {
	case o.Action == FailureWait:
		return fmt.Sprintf("%s %s", o.Action, o.Wait)
	case o.Action == FailureRestart && o.Wait != 0:
		return fmt.Sprintf("%s %d %s %s", o.Action, o.Rounds, FailureWait, o.Wait)
	case o.Action == FailureRestart:
		return fmt.Sprintf("%s %d", o.Action, o.Rounds)
	default:
		return string(o.Action)
	}
}

// MarshalText writes o as a workflow file does.
func (o OnFailure) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads undo, stop, wait with a duration, and restart with a number of rounds and perhaps a wait.
func (o *OnFailure) UnmarshalText(text []byte) error {
	word, rest, _ := strings.Cut(string(text), " ")
	switch action := FailureAction(word); {
	case (action == FailureUndo || action == FailureStop) && rest == "":
		*o = OnFailure{Action: action}
		return nil
	case action == FailureWait && rest != "":
		wait, err := ParseDuration(strings.TrimSpace(rest))
		if err != nil {
			return err
		}
		*o = OnFailure{Action: action, Wait: wait}
		return nil
	case action == FailureRestart && rest != "":
		again, err := parseRestart(strings.Fields(rest))
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		*o = again
		return nil
	default:
		return fmt.Errorf("%q is not one of undo, stop, wait DURATION and restart ROUNDS", text)
	}
}

// parseRestart reads the arguments of restart: ROUNDS, or ROUNDS wait DURATION.
func parseRestart(words []string) (OnFailure, error) {
	o := OnFailure{Action: FailureRestart}
	if len(words) != 1 && (len(words) != 3 || words[1] != string(FailureWait)) {
		return o, errors.New("want restart ROUNDS, or restart ROUNDS wait DURATION")
	}
	var err error
	if o.Rounds, err = strconv.Atoi(words[0]); err != nil {
		return o, fmt.Errorf("%q is not a number of rounds", words[0])
	}
	if len(words) == 3 {
		o.Wait, err = ParseDuration(words[2])
	}
	return o, err
}
