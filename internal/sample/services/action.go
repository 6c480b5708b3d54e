// Package services is a small shop to run workflows against: inventory, payments and shipping over HTTP, which fail
// by script, refuse repeated calls, and keep a ledger of every effect.
//
// It honours the headers of Makegood's http agent: Idempotency-Key, Makegood-Attempt, Makegood-Forward-Key. It knows
// no jobs, writes no files and is no example of a payments service: it is the world that Check can judge a workflow
// engine by.
package services

// Action is a request to the shop for an order.
type Action string

// The actions: each has one that undoes it.
const (
	Reserve Action = "reserve"
	Release Action = "release"
	Charge  Action = "charge"
	Refund  Action = "refund"
	Ship    Action = "ship"
	Cancel  Action = "cancel"
)

// pairs are the services, with what each does and how it is undone.
var pairs = []struct {
	service       string
	forward, undo Action
}{
	{"inventory", Reserve, Release},
	{"payments", Charge, Refund},
	{"shipping", Ship, Cancel},
}

// Actions are all actions, each followed by the one that undoes it.
func Actions() []Action {
	var all []Action
	for _, p := range pairs {
		all = append(all, p.forward, p.undo)
	}
	return all
}

// Path is where the action is asked for, by POST; empty for an unknown action.
func (a Action) Path() string {
	for _, p := range pairs {
		if a == p.forward || a == p.undo {
			return "/" + p.service + "/" + string(a)
		}
	}
	return ""
}

// Undoes returns the action that this one undoes; empty for one that goes forward.
func (a Action) Undoes() Action {
	for _, p := range pairs {
		if a == p.undo {
			return p.forward
		}
	}
	return ""
}
