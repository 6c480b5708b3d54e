package makegoodtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/makegood-dev/makegood/agent"
)

// The headers by which the http agent, and agents that do likewise, describe a request to a service.
const (
	headerKey        = "Idempotency-Key"
	headerForwardKey = "Makegood-Forward-Key"
)

var (
	errRefused = errors.New("refused")
	errLost    = errors.New("the connection broke before the answer came")
)

// Fake is a remote service in memory that only counts. It does as the services of a workflow should: it performs an
// action once for a key, takes back the effect under a key when it is told to undo it, and from then on refuses that
// key, whether there was an effect to undo or not. It keeps a ledger of all requests.
//
// A Go agent calls Do and Undo; a Fake is also an http.Handler, for agents that make requests. Many goroutines may
// use one at once.
type Fake struct {
	name string

	mu      sync.Mutex
	ignores map[string]bool
	refuses map[string]bool
	loses   map[string]int
	// made is the forward action that was asked for under a key; undone are the keys that are refused.
	made   map[string]string
	undone map[string]bool
	stands map[string]int
	ledger []string
}

var _ http.Handler = (*Fake)(nil)

// NewFake makes a service of this name, which stands in its ledger.
func NewFake(name string) *Fake {
	return &Fake{
		name: name, ignores: map[string]bool{}, refuses: map[string]bool{}, loses: map[string]int{},
		made: map[string]string{}, undone: map[string]bool{}, stands: map[string]int{},
	}
}

// IgnoreKeys makes it a bad service: it does these actions again whenever it is asked, whatever the key,
// and although they were undone. It returns the service itself.
func (f *Fake) IgnoreKeys(actions ...string) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, action := range actions {
		f.ignores[action] = true
	}
	return f
}

// Refuse makes it refuse these actions from now on, for good: the step, or the undo, is given up. It returns
// the service itself.
func (f *Fake) Refuse(actions ...string) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, action := range actions {
		f.refuses[action] = true
	}
	return f
}

// LoseAnswers lets the next calls of an action, so many of them, have their effect and break off: the caller does not
// know whether it was done. It returns the service itself.
func (f *Fake) LoseAnswers(action string, calls int) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loses[action] = calls
	return f
}

// Do does an action under an idempotency key, once; an empty key is none, and it is done each time. A refusal is a
// final failure without an effect, as agent.Failure reads it; a lost answer is a plain error. After the end of ctx Do
// has no effect.
func (f *Fake) Do(ctx context.Context, action, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, made := f.made[key]
	switch honours := !f.ignores[action] && key != ""; {
	case f.refuses[action]:
		return f.refuse(action, key, "refused")
	case honours && f.undone[key]:
		return f.refuse(action, key, "refused, because this key was undone")
	case honours && made:
		f.note(action, key, "done before, not again")
	case made:
		f.stands[action]++
		f.note(action, key, "DONE AGAIN")
	default:
		f.stands[action]++
		f.note(action, key, "done")
	}
	f.made[key] = action
	return f.answer(action)
}

// Undo takes back the effect under the key of a step, and refuses that key from then on. It succeeds, too, if there
// is no effect. Its errors are those of Do.
func (f *Fake) Undo(ctx context.Context, action, forwardKey string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	forward, made := f.made[forwardKey]
	switch {
	case f.refuses[action]:
		return f.refuse(action, forwardKey, "refused")
	case f.undone[forwardKey] && !f.ignores[action]:
		f.note(action, forwardKey, "undone before, not again")
	case made:
		f.stands[forward]--
		f.note(action, forwardKey, "undone: "+forward)
	default:
		f.note(action, forwardKey, "nothing to undo")
	}
	f.undone[forwardKey] = true
	return f.answer(action)
}

func (f *Fake) refuse(action, key, why string) error {
	f.note(action, key, why)
	return agent.Final(agent.NotApplied(fmt.Errorf("%s: %s: %w", f.name, action, errRefused)))
}

// answer returns the answer to an action that was done.
func (f *Fake) answer(action string) error {
	if f.loses[action] == 0 {
		return nil
	}
	f.loses[action]--
	return fmt.Errorf("%s: %s: %w", f.name, action, errLost)
}

func (f *Fake) note(action, key, what string) {
	f.ledger = append(f.ledger, fmt.Sprintf("%s  %-10s %-24s %s", f.name, action, key, what))
}

// Stands is how many times an action was done, less how many times it was undone.
func (f *Fake) Stands(action string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stands[action]
}

// Ledger returns the requests and their effects, a line each, in order.
func (f *Fake) Ledger() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.ledger, "\n")
}

// ServeHTTP takes the last part of the path for the action, Idempotency-Key for the key, and a request
// with Makegood-Forward-Key for an undo. It answers 200 and an object with the action, 409 where it
// refuses, and breaks the connection where the answer is lost.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action, forward := path.Base(r.URL.Path), r.Header.Get(headerForwardKey)
	var err error
	if forward != "" {
		err = f.Undo(r.Context(), action, forward)
	} else {
		err = f.Do(r.Context(), action, r.Header.Get(headerKey))
	}
	switch {
	case errors.Is(err, errRefused):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "application/json")
		// The recorder or connection that cannot take it shows that to its reader.
		_ = json.NewEncoder(w).Encode(map[string]string{"action": action})
	}
}
