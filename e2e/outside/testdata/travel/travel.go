// Package travel is a travel agency: its workflow, and agents that keep their bookings in memory.
package travel

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"slices"
	"sync"

	"github.com/makegood-dev/makegood/agent"
)

// Files hold the workflow.
//
//go:embed trip.yaml
var Files embed.FS

// Request is what an agent is asked to book.
type Request struct {
	Trip string `json:"trip"`
	What string `json:"what"`
}

// Booking is what it has booked.
type Booking struct {
	Agent string `json:"agent"`
	Request
}

var errSoldOut = errors.New("it is sold out")

// Agency keeps the bookings of all agents, by the key under which each was made. Make it with Open.
type Agency struct {
	mu       sync.Mutex
	bookings map[string]Booking
	canceled map[string]bool
}

// Open opens an agency that has booked nothing yet.
func Open() *Agency {
	return &Agency{bookings: map[string]Booking{}, canceled: map[string]bool{}}
}

// Agents are those of the workflow.
func (a *Agency) Agents() []agent.Handler {
	return []agent.Handler{a.agent("airline"), a.agent("hotels"), a.agent("cars")}
}

// Bookings are those that stand for a trip, by agent.
func (a *Agency) Bookings(trip string) []Booking {
	a.mu.Lock()
	defer a.mu.Unlock()
	stand := []Booking{}
	for _, b := range a.bookings {
		if b.Trip == trip {
			stand = append(stand, b)
		}
	}
	slices.SortFunc(stand, func(a, b Booking) int { return cmp.Compare(a.Agent, b.Agent) })
	return stand
}

func (a *Agency) agent(name string) agent.Handler {
	book := func(ctx context.Context, r Request) (Booking, error) {
		return a.book(agent.TaskOf(ctx).Key, Booking{name, r})
	}
	cancel := func(ctx context.Context, _ Request, _ *Booking) error {
		a.cancel(agent.TaskOf(ctx).Undo.ForwardKey)
		return nil
	}
	return agent.New(name, agent.Do("book", book).Undo("cancel", cancel))
}

func (a *Agency) book(key string, b Booking) (Booking, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.What == "sold out" || a.canceled[key] {
		return Booking{}, agent.Final(agent.NotApplied(errSoldOut))
	}
	a.bookings[key] = b
	return b, nil
}

// cancel takes back what was booked under a key, and sees to it that nothing will be.
func (a *Agency) cancel(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.bookings, key)
	a.canceled[key] = true
}
