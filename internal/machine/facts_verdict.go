package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Kind is what became of an event.
type Kind string

// The kinds of verdict. With every kind the commands that Pending derives must be carried out: an event without an
// effect may be the second delivery of one that lost its commands.
const (
	Applied   Kind = "applied"   // the job changed, and must be saved
	Duplicate Kind = "duplicate" // it was applied before, or asks for the state that the job already has
	Stale     Kind = "stale"     // it is about a part that is over, or lacks the right token or the held claim
	Newer     Kind = "newer"     // its token is of a later scheme: the reply is a newer release's to judge, and is left
	Refused   Kind = "refused"   // the request cannot be granted; Reason says why
	Wanting   Kind = "wanting"   // facts are missing: Wants names them
)

// Verdict says what Apply made of an event.
type Verdict struct {
	Kind   Kind
	Reason string
	// With Wanting, Apply must have the definition of this name if there is one, else the facts that Wants and Asks name.
	Definition string
	Wants      []Want
	Asks       []Ask
	// Entries are the entries that the event adds to the job's history, if Kind is Applied: only exceptions.
	Entries []job.Entry
}

// Want names a fact: what the expressions of a step, or of its undo, give.
type Want struct {
	Step string
	Undo bool
	// Ready: what its repeat.until gives, over the output that it has now.
	Ready bool
}

// Fact is what the expressions of a step gave.
type Fact struct {
	// Run is the value of when; true where there is none, and for an undo. Of a Want that asks whether a step is Ready it
	// is the value of repeat.until.
	Run bool
	// Until is when a step ends that waits by itself; zero: For is how long it waits.
	Until time.Time
	For   makegood.Duration
	// Err says why when or with could not be evaluated; empty if they could.
	Err string
}

// Facts are what deciding needs and cannot know.
type Facts struct {
	// Random is a random number; jitter is drawn from it.
	Random uint64
	// Values are the facts about expressions that were asked for, Found those about claims.
	Values map[Want]Fact
	Found  map[Ask]job.Found
	// Definition is the one that was asked for.
	Definition *Definition
	// Held are the agents and workflows that are paused.
	Held job.Holds
	// Secret is limits.SecretBytes random bytes, for a job that has none.
	Secret []byte
	// Publishes: every change is published. Published is the number up to which this job's changes are known to have been
	// published.
	Publishes bool
	Published int
	// Period is how often the Supervisor looks at overdue attempts: looking more often is useless.
	Period time.Duration
	// Incarnation is the run of the embedded engine; 0 on AWS. A job of an earlier run gets Interrupted before any other
	// event: its open attempts would be taken for this run's.
	Incarnation int

	// Lane is what the process that decides may run itself. The zero value: nothing.
	Lane Lane

	// Graph is that of the workflow; nil: it is made. It is no fact, and no decision depends on it.
	Graph *Graph
	// Room is memory for the steps of the returned job: those of the job that the call before returned Wanting, which has
	// no other use then. Nil: they get their own memory. It is no fact, and no decision depends on it.
	Room []job.StepState
}

// Definition is the definition to which a job is to be moved: a fact.
type Definition struct {
	Hash     string
	Workflow makegood.Workflow
	// Err says why there is none that a job could be moved to; empty: there is.
	Err string
	// Misfit says where the input that the job would have does not fit what the definition says of inputs; empty: it fits.
	Misfit string
	// Reads are the steps with tasks made from the job's input, UndoReads those with such undos.
	Reads, UndoReads []string
}

// AskKind is the kind of question about an attempt.
type AskKind string

// The kinds. All but the last two are operations on the claim item of the step.
const (
	AskLook     AskKind = "look"     // read its claim
	AskClose    AskKind = "close"    // end it, if it has no claim
	AskOverrule AskKind = "overrule" // write over a claim that cannot be true; the job was loaded after it was seen
	AskItems    AskKind = "items"    // say whether the named items of its child have failed
	// AskPermit has the gate of its agent give the attempt a permit, or a place before the gate.
	AskPermit AskKind = "permit"
)

// Ask names a fact about the claim of an attempt.
type Ask struct {
	Kind    AskKind
	Step    string
	Attempt int
	Undo    bool
	// Agent is the one that AskPermit is about: the job may be on its way to another definition.
	Agent string
	// LockedBy is the agent that replied a failure, or that holds the claim to be overruled.
	LockedBy string
	// Mark: the attempt is unwanted, and was so when the job was saved last.
	Mark bool
	// Redrives is how often the child of the attempt was to do its failed items again.
	Redrives int
	// Indexes are the items that AskItems is about.
	Indexes job.Indexes
	// Edited is the number of the edit that the child of the attempt is to have.
	Edited int
}

// Lane is the right to run inline attempts in the process that decides, after the coming save.
type Lane struct {
	// LockedBy names the coming save, and no other.
	LockedBy string
	// Agents are those that are linked into the process and have a free place there.
	Agents []string
	// Queued are the steps whose attempts go through the queues all the same.
	Queued []string
	// Until is when the process has no more time; zero: there is no such end.
	Until time.Time
}
