package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// call is a request that was understood.
type call struct {
	action     Action
	order      string
	line       int // of the order, from 0: each may be reserved by itself
	amount     Amount
	key        string
	attempt    int
	forwardKey string // of an undo: the key of the action to undo
}

// answer is what a call is told.
type answer struct {
	status int
	body   []byte
}

// books is the memory of the shop: its effects, its answers by key, and the keys that it was asked never to serve
// again.
type books struct {
	script    Script
	countOnly bool
	record    func(Effect)

	mu         sync.Mutex
	ledger     Ledger
	answers    map[string]answer // by key
	standing   map[string]Effect // by key: forward effects that were not undone
	tombstones map[string]bool   // forward keys that were undone
	tries      map[attempted]int // which try an attempt was
	nextTry    map[acted]int     // how many attempts were seen
}

// acted is an action for a line of an order. A caller that knows no lines acts for line 0.
type acted struct {
	order  string
	line   int
	action Action
}

type attempted struct {
	acted
	key     string
	attempt int
}

func newBooks(o Options) *books {
	b := &books{script: o.Script, countOnly: o.CountOnly, record: o.Record}
	b.reset()
	return b
}

// reset forgets everything.
func (b *books) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger = newLedger()
	b.answers, b.standing, b.tombstones = map[string]answer{}, map[string]Effect{}, map[string]bool{}
	b.tries, b.nextTry = map[attempted]int{}, map[acted]int{}
}

func (b *books) snapshot() Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.clone()
}

// arrive counts a request, and returns the fault that it meets.
func (b *books) arrive(c call) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Totals.Requests++
	if b.ledger.Requests[c.key] == nil {
		b.ledger.Requests[c.key] = map[int]int{}
	}
	b.ledger.Requests[c.key][c.attempt]++

	// The number of an attempt does not serve as the number of the try: an undo's attempts go on
	// where the step's ended, and an attempt that a crash cut off never came here.
	id := attempted{acted{c.order, c.line, c.action}, c.key, c.attempt}
	if b.tries[id] == 0 {
		b.nextTry[id.acted]++
		b.tries[id] = b.nextTry[id.acted]
	}
	fault := b.script.Fault(c.drawn(), c.action, b.tries[id])
	if fault != NoFault {
		b.ledger.Totals.Faults[fault]++
	}
	return fault
}

// drawn is the id by which the script draws the faults of a call: each line of an order meets its own.
func (c call) drawn() string {
	if c.line == 0 {
		return c.order
	}
	return fmt.Sprintf("%s/%d", c.order, c.line)
}

// apply does what the call asks for, unless it was done, undone or is refused.
func (b *books) apply(c call) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.countOnly {
		return b.do(c, c.amount)
	}
	// Before the memory: an action that was done under a key and then undone must not be called done again.
	if b.tombstones[c.key] {
		b.ledger.Totals.TombstoneRefusals++
		return problem(http.StatusConflict, "undone: no request is carried out any more under the key "+c.key)
	}
	if said, known := b.answers[c.key]; known {
		b.ledger.Totals.DuplicatesRefused++
		return said
	}
	said := b.once(c)
	b.answers[c.key] = said
	return said
}

// once answers the first call under a key.
func (b *books) once(c call) answer {
	if c.action.Undoes() == "" {
		return b.do(c, c.amount)
	}
	b.tombstones[c.forwardKey] = true
	done, stands := b.standing[c.forwardKey]
	if !stands {
		b.ledger.Totals.NothingToUndo++
		return success(map[string]any{"order": c.order, "action": "nothing to undo"})
	}
	return b.do(c, done.Amount)
}

// do makes the effect, unless the script refuses it.
func (b *books) do(c call, amount Amount) answer {
	if no, refused := b.script.refusal(c.order, c.line, c.action); refused {
		b.ledger.refuse(c.order, c.action)
		return problem(no.status, no.reason)
	}
	e := Effect{
		Order: c.order, Line: c.line, Action: c.action, Key: c.key, Attempt: c.attempt, Amount: amount,
		At: time.Now().UTC().Truncate(time.Millisecond),
	}
	b.ledger.add(e)
	if b.record != nil {
		b.record(e)
	}
	if c.action.Undoes() == "" {
		b.standing[c.key] = e
	} else {
		delete(b.standing, c.forwardKey)
	}
	return success(map[string]any{
		"order": c.order, "action": c.action, "amount": amount, "number": b.ledger.Totals.Effects,
	})
}

func success(body map[string]any) answer { return answer{http.StatusOK, encode(body)} }

func problem(status int, reason string) answer {
	return answer{status, encode(map[string]any{"error": reason})}
}

func encode(body map[string]any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("services: encode an answer: %v", err))
	}
	return append(text, '\n')
}
