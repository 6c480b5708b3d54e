// Package modelcheck goes through every interleaving of small jobs: Schedulers that load, find out,
// decide, save, send and close; agents that claim, work and reply, late or never, and lie; Supervisors that believe
// whatever an index ever said; messages that are lost, doubled and held up; crashes; operators. In every state
// it looks whether the promises of docs/architecture.md hold, and from every state whether the job can
// still end.
//
// It runs the shipped functions: machine.Submit, Apply, Pending and TaskOf decide, those of internal/store/may.go say
// which writes hold and what claim items become. It does not run the Scheduler, the agents' runner or an
// adapter, and it proves nothing about jobs larger than its configurations.
package modelcheck

import (
	"fmt"
	"hash/maphash"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// Config is a small job, and what may happen to it.
type Config struct {
	Name string
	// Workflow counts its times in milliseconds, each a tick: at most a few.
	Workflow makegood.Workflow
	// Verbs are the requests that operators make, each at most once, at any time and in any order.
	Verbs []makegood.Verb
	// Fails, Final and Unknown let agents fail so that it may be tried again, for good, and without
	// knowing what was done; UndoFails lets them fail when they undo, too.
	Fails, Final, Unknown, UndoFails bool
	// Heartbeats lets agents extend their claims, Refusals lets the queue refuse tasks, and Wipe lets
	// everything but the store and the remote services go down with all messages.
	Heartbeats, Refusals, Wipe bool
	// Restarts is how often an embedded engine starts again, as a new run; with Power, claims that were not flushed may
	// be lost with it.
	Restarts uint8
	Power    bool
	// Weeks is how often so much time passes that tasks cannot be claimed any more and claim items are deleted.
	Weeks uint8
	// Lies is how often an agent writes a claim that cannot be true.
	Lies uint8
	// Folds lets two messages come in one batch.
	Folds bool
	// Waits lets the agent of the first step answer that it waits, and Words are what those outside may say of it then.
	Waits bool
	Words []Word
	// Settlements are what a person says that they have dealt with themselves.
	Settlements []Settlement
	// ChildVerbs are requests that people make of children, each at most once. OneWay: children cannot be undone. Late
	// lets invocations stall before they act on a child, and continue later.
	ChildVerbs   []makegood.Verb
	OneWay, Late bool
	// Gate lets one attempt be with agent a, which another job has at first.
	Gate bool
	// Slow lets time pass, and others write, between loading, each finding out, and deciding.
	Slow bool
	// Single leaves one Scheduler, of two.
	Single bool
	// Resends is how many resends of a task are distinguished.
	Resends uint8
	// Period is how often the Supervisor comes: an attempt is not looked at sooner, before its StartBy.
	Period makegood.Duration
}

// Result is what a check found.
type Result struct {
	States, Edges, Depth int
	// Stuck counts the states from which the job cannot end.
	Stuck int
	// Violation is what is wrong, and empty if nothing is; Trace is the shortest way there.
	Violation string
	Trace     []string
	Took      time.Duration
	// Seen is what was played.
	Seen *layers.Seen
}

// model is a check under way.
type model struct {
	config        Config
	w             makegood.Workflow
	needs         [maxSteps][maxSteps]bool
	answers       map[question]answer
	strange       map[record]string
	requests      [8]string // by what names a job remembers requests
	saveConflicts [2]bool
	lane          bool // some steps are inline
	founds        []found
	played        layers.Seen

	seeds   [2]maphash.Seed
	seen    map[[2]uint64]uint32
	parents []parent
	edges   []edge
	ends    []uint32
}

// parent is how a state was first reached: from which, by which of its actions.
type parent struct {
	from   uint32
	action uint8
}

type edge struct{ from, to uint32 }

// Check goes through all states of a configuration, nearest first, until it finds a violation or has
// seen limit states; then it asks of each whether the job can end from there. It keeps 128 bits of each
// state that it has seen, the edges between them, and the whole of those that it has yet to look at.
func Check(c Config, limit int) Result {
	start := time.Now()
	m := newModel(c)
	r := m.search(limit)
	r.Took, r.Seen = time.Since(start), &m.played
	return r
}

func newModel(c Config) *model {
	m := &model{
		config: c, w: c.Workflow, answers: map[question]answer{}, strange: map[record]string{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: map[[2]uint64]uint32{},
	}
	index := map[string]int{}
	for i, s := range m.w.Steps {
		if s.Name != stepName(i) {
			panic(fmt.Sprintf("modelcheck: step %d is called %s, want %s", i, s.Name, stepName(i)))
		}
		index[s.Name] = i
		m.lane = m.lane || s.Inline
		for _, need := range s.Needs {
			m.needs[i][index[need]] = true
		}
	}
	m.fillPredicates()
	return m
}

// first is the state right after the submission was stored: its tasks are yet to be sent.
func (m *model) first() state {
	facts := m.facts(question{})
	for {
		j, v := machine.Submit(m.w, machine.Submission{ID: "j", Birth: "birth"}, facts, base)
		if v.Kind == machine.Wanting {
			for _, want := range v.Wants {
				facts.Values[want] = machine.Fact{Run: true}
			}
			continue
		}
		s := state{job: m.compact(j), gate: m.firstGate()}
		for i := range s.items {
			s.items[i] = [2]item{{ends: never}, {ends: never}}
		}
		s.actors[1] = actor{phase: sending, out: m.commands(j, []job.Event{job.Submitted{}})}
		if m.config.Single {
			s.actors[0] = actor{phase: absent}
		}
		if broken := m.inlined(&s, new(record)); broken != "" {
			panic("modelcheck: the birth: " + broken)
		}
		return s
	}
}

// search is the breadth-first search.
func (m *model) search(limit int) Result {
	first := m.first()
	layer := []state{first}
	m.note(&first, parent{})
	r := Result{States: 1}
	for from := uint32(0); len(layer) > 0; r.Depth++ {
		var after []state
		for i := range layer {
			for k, f := range m.next(&layer[i]) {
				r.Edges++
				to, isNew := m.note(&f.state, parent{from, uint8(k)})
				if !f.action.fault {
					m.edges = append(m.edges, edge{from, to})
				}
				if !isNew && f.broken == "" {
					continue
				}
				if broken := m.look(&f); broken != "" {
					r.States = len(m.parents)
					r.Violation = broken
					r.Trace = append(m.trace(from), m.line(&layer[i], &f))
					return r
				}
				after = append(after, f.state)
			}
			from++
		}
		layer = after
		if len(m.parents) > limit {
			r.Violation = fmt.Sprintf("more than %d states", limit)
			break
		}
	}
	r.States = len(m.parents)
	if r.Violation == "" {
		m.checkLive(&r)
	}
	return r
}

// note files a state under its hash, and reports whether it is new.
func (m *model) note(s *state, p parent) (id uint32, isNew bool) {
	key := [2]uint64{maphash.Comparable(m.seeds[0], *s), maphash.Comparable(m.seeds[1], *s)}
	if id, known := m.seen[key]; known {
		return id, false
	}
	id = uint32(len(m.parents))
	m.seen[key] = id
	m.parents = append(m.parents, p)
	if s.ended() {
		m.ends = append(m.ends, id)
	}
	return id, true
}

// look judges a new state, and the action that led there.
func (m *model) look(f *found) string {
	if f.broken != "" {
		return f.broken
	}
	if broken := m.violation(&f.state); broken != "" {
		return broken
	}
	strange, known := m.strange[f.state.job]
	if !known {
		strange = m.strangers(f.state.job)
		m.strange[f.state.job] = strange
	}
	return strange
}
