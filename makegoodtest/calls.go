package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

var (
	errFault  = errors.New("a fault of the test")
	errKilled = errors.New("the engine was killed")
)

// effect is the fate of a call of the engine to its store or its queues.
type effect int

const (
	goesOn effect = iota
	failsBefore
	failsAfter
	killedBefore
	killedAfter
)

// effectNames are in the order of the effects.
var effectNames = []string{"goes-on", "fails-before", "fails-after", "killed-before", "killed-after"}

func (e effect) String() string { return effectNames[e] }

// call is a call of the engine: the n-th of its name in its life, and its purpose as a clause: "the job was loaded".
type call struct {
	name string
	n    int
	what string
}

// suffers describes the fate of a call in a sentence.
func (c call) suffers(e effect) string {
	switch e {
	case failsBefore:
		return "a call failed, so that this did not happen: " + c.what
	case failsAfter:
		return c.what + ", and yet that call answered with an error"
	case killedBefore:
		return "the engine was killed before " + c.what
	case killedAfter:
		return "the engine was killed after " + c.what + ", before anything that follows from it"
	default:
		panic(fmt.Sprintf("makegoodtest: effect %d is no fault", e))
	}
}

// life is one life of the engine, from its start to its death.
type life struct {
	// strike decides the fate of a call; one goroutine at a time calls it. Nil: all go on.
	strike func(call) effect
	// note is told of every call that is struck.
	note func(call, effect)
	kill context.CancelFunc

	mu     sync.Mutex
	counts map[string]int
	dead   bool
}

// do makes a call, with the fate that strike decides.
func (l *life) do(name, what string, execute func() error) error {
	e, err := l.begin(name, what)
	switch {
	case err != nil:
		return err
	case e == failsBefore:
		return errFault
	case e == killedBefore:
		return l.die()
	}
	err = execute()
	switch {
	case l.isDead():
		return errKilled
	case e == failsAfter:
		return errFault
	case e == killedAfter:
		return l.die()
	}
	return err
}

func (l *life) begin(name, what string) (effect, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return goesOn, errKilled
	}
	l.counts[name]++
	if l.strike == nil {
		return goesOn, nil
	}
	c := call{name: name, n: l.counts[name], what: what}
	e := l.strike(c)
	if e != goesOn {
		l.note(c, e)
	}
	return e, nil
}

func (l *life) die() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.kill()
	return errKilled
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// counted returns how many calls of each name there were.
func (l *life) counted() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// purposes are what the calls of the store are for, as clauses; a call that has none here is never struck.
var purposes = map[string]string{
	"Create":        "the job was stored",
	"Load":          "the job was loaded",
	"Save":          "it was saved that CHANGES",
	"Park":          "the job was parked: OF",
	"Claim":         "attempt ATTEMPT of step STEP was claimed",
	"Heartbeat":     "attempt ATTEMPT of step STEP got more time by a heartbeat",
	"Close":         "it was tried to close attempt ATTEMPT of step STEP",
	"Look":          "attempt ATTEMPT of step STEP was looked at",
	"Overrule":      "the claim on step STEP was overruled",
	"Due":           "the Supervisor looked for overdue jobs",
	"PutPayload":    "OF was stored",
	"Payload":       "OF was read",
	"PutDefinition": "the workflow was stored",
	"Definition":    "the workflow was read",
}

// watch returns the store of one life, and notes each job that is stored.
func (w *world) watch(inner store.Store, l *life) store.Store {
	return faultstore.Around(inner, func(c faultstore.Call, execute func() error) error {
		purpose, struck := purposes[c.Op]
		if !struck {
			return execute()
		}
		said := strings.NewReplacer("ATTEMPT", strconv.Itoa(c.Attempt), "STEP", c.Step, "OF", c.Of, "CHANGES", changes(w.lastStored(c.Job), c.Written))
		return l.do(c.Op, said.Replace(purpose), func() error {
			err := execute()
			if err == nil && c.Written.ID != "" {
				w.noteStored(c.Written)
			}
			return err
		})
	})
}
