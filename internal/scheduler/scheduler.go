// Package scheduler moves jobs on, and is the only package that does: it loads a job, lets the core decide, saves, and
// then carries out the commands of the core. It holds no rule about jobs.
//
// # The worklist
//
// A batch is decoded into work, an entry a job (handle.go); submissions are stored, and their commands are work, too
// (submissions.go). Then (worklist.go) each job that has events is moved by them, which is one load and one save
// (move.go); messages that become due go into an outbox (outbox.go), and the tasks of all jobs go out together. The
// rest is each job's own affair: unwanted attempts are closed (closings.go), and the outcomes of that, and of refused
// tasks, are events that move it again, until none is left. At last people are told (tell.go), and failed records are
// given back.
//
// # Write first, then send
//
// A job is saved before any message is sent. A crash between the two is harmless: the event that made a command due is
// still on the queue, and delivered again derives the same command. Where the event itself is lost, StartBy or
// CompleteBy passes and the Supervisor's event derives it.
//
// # After an error
//
// A record is given back to the queue if its job could not be loaded, saved or told of. Poison is put into quarantine
// with its reason. A job that cannot be decoded or decided about is parked in Error, so that it blocks neither the
// batch nor the sweep.
//
// # Jobs and messages of a newer release
//
// They are left: neither decided about, nor parked, nor refused, nor put into quarantine. The messages are sent again,
// delayed (leave.go); a caller that waits for an answer is told to ask again (NewerError).
package scheduler

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/internal/crew"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/tally"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// maxConflicts is how often a save is tried against others of the same job before its events go back
// to the queue.
const maxConflicts = 50

// Scheduler handles events and requests. Its methods may be called by many goroutines at once.
type Scheduler struct {
	config      Config
	stats       tally.Of[Stats]
	definitions sync.Map     // hash -> *workflowfile.Compiled
	keys        sync.Map     // string, the key of a limit -> *workflowfile.Key
	graphs      sync.Map     // *workflowfile.Compiled, one of definitions -> *machine.Graph
	parts       atomic.Int64 // how many of definitions are of parts of maps
	answers     sync.Pool    // map[machine.Want]machine.Fact, empty
	currents    currents
	alerts      sync.Map // alert -> time.Time before which there is no other alert
	turns       turns
	ledger      ledger
	renewals    renewals
	receivers   *pause.Receivers // the receivers of notices
	crew        crew.Crew
}

// New makes a Scheduler. It panics on a configuration that lacks a required field.
func New(c Config) *Scheduler {
	c = c.complete()
	return &Scheduler{config: c, turns: make(turns, c.Evaluations), receivers: pause.NewReceivers(c.Logger)}
}

// Stats returns the counts of events and commands since the start.
func (s *Scheduler) Stats() Stats { return s.stats.Snapshot() }

func (s *Scheduler) now() time.Time { return domain.Instant(s.config.Now()) }

// lockedBy names the saver: this instance, and a nonce that distinguishes this save from every other.
func (s *Scheduler) lockedBy() string {
	name := append(make([]byte, 0, 64), s.config.Instance...)
	return string(hex.AppendEncode(append(name, ':'), randomBytes(nonceBytes)))
}

// nonceBytes is how many random bytes a nonce has.
const nonceBytes = 8

func nonce(bytes func(int) []byte) string { return hex.EncodeToString(bytes(nonceBytes)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = crand.Read(b) // never fails, says its documentation
	return b
}

// definition returns the compiled definition of a hash. Definitions never change, so one that was read
// is good for ever. A *NewerError, for one that a newer release wrote, is not kept.
func (s *Scheduler) definition(ctx context.Context, hash string) (*workflowfile.Compiled, error) {
	if c, ok := s.definitions.Load(hash); ok {
		return c.(*workflowfile.Compiled), nil
	}
	stored := func(hash string) ([]byte, error) { return s.config.Definitions.Definition(ctx, hash) }
	c, err := workflowfile.LoadBy(hash, stored, s.config.Read)
	if errors.Is(err, workflowfile.ErrNewer) {
		return nil, &NewerError{What: "the definition of this workflow"}
	}
	if err != nil {
		return nil, err
	}
	if c.Workflow.Part != nil {
		s.forgetParts()
	}
	s.definitions.Store(hash, c)
	return c, nil
}

// graph returns the graph of a definition, which every decision about its jobs needs.
func (s *Scheduler) graph(c *workflowfile.Compiled) *machine.Graph {
	if g, ok := s.graphs.Load(c); ok {
		return g.(*machine.Graph)
	}
	g := machine.GraphOf(c.Workflow)
	s.graphs.Store(c, g)
	return g
}
