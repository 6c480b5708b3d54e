package makegoodtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// effect is the fate of a call of the engine to its store or its queues.
type effect = faultstore.Effect

// effectNames are in the order of the effects of faultstore.
var effectNames = []string{"goes-on", "fails-before", "fails-after", "killed-before", "killed-after"}

// call is a call of the engine: the n-th of its name in its life, and its purpose as a clause: "the job was loaded".
type call struct {
	name string
	n    int
	what string
}

// suffers describes the fate of a call in a sentence.
func (c call) suffers(e effect) string {
	switch e {
	case faultstore.FailBefore:
		return "a call failed, so that this did not happen: " + c.what
	case faultstore.FailAfter:
		return c.what + ", and yet that call answered with an error"
	case faultstore.CrashBefore:
		return "the engine was killed before " + c.what
	case faultstore.CrashAfter:
		return "the engine was killed after " + c.what + ", before anything that follows from it"
	default:
		panic(fmt.Sprintf("makegoodtest: effect %d is no fault", e))
	}
}

// life is one life of the engine, from its start to its death.
type life struct {
	*faultstore.Process
	mu     sync.Mutex
	counts map[string]int
}

// newLife begins a life in which strike decides the fate of a call, one call at a time; nil: all go on. note is told of
// every call that is struck.
func newLife(strike func(call) effect, note func(call, effect), kill func()) *life {
	l := &life{counts: map[string]int{}}
	l.Process = faultstore.NewProcess(func(c faultstore.Call) effect {
		l.mu.Lock()
		l.counts[c.Op]++
		named := call{name: c.Op, n: l.counts[c.Op], what: c.Of}
		l.mu.Unlock()
		if strike == nil {
			return faultstore.None
		}
		e := strike(named)
		if e != faultstore.None {
			note(named, e)
		}
		return e
	})
	l.OnCrash = kill
	return l
}

// do makes a call, with the fate that strike decides.
func (l *life) do(name, what string, execute func() error) error {
	return l.Do(faultstore.Call{Op: name, Of: what}, execute)
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
