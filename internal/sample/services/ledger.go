package services

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Amount is money in cents. As JSON it is a number with at most two decimals.
type Amount int64

// maxAmount keeps sums of amounts far from the ends of an Amount.
const maxAmount Amount = 1e12

// MarshalJSON writes 13912 as 139.12.
func (a Amount) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(a)/100, 'f', -1, 64), nil
}

// UnmarshalJSON reads a number. It refuses one that is not whole cents, or beyond ten billion.
func (a *Amount) UnmarshalJSON(text []byte) error {
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("amount %s: want a number", text)
	}
	cents := math.Round(number * 100)
	if math.Abs(number*100-cents) > 1e-4 || math.Abs(cents) > float64(maxAmount) {
		return fmt.Errorf("amount %s: want whole cents, at most %d", text, maxAmount/100)
	}
	*a = Amount(cents)
	return nil
}

// Effect is an effect of the shop. An effect made twice is there twice.
type Effect struct {
	Order   string    `json:"order"`
	Line    int       `json:"line,omitempty"`
	Action  Action    `json:"action"`
	Key     string    `json:"key"`
	Attempt int       `json:"attempt"`
	Amount  Amount    `json:"amount"`
	At      time.Time `json:"at"`
}

// Ledger is all that the shop knows, at one moment.
type Ledger struct {
	// Effects are in the order in which they were made.
	Effects []Effect `json:"effects"`
	// Orders sums up the effects, and records final refusals.
	Orders map[string]Order `json:"orders"`
	Totals Totals           `json:"totals"`
	// Requests counts the requests received, by Idempotency-Key and then by Makegood-Attempt.
	Requests map[string]map[int]int `json:"requests"`
}

// Order is what became of one order.
type Order struct {
	// Counts has how often each action took effect, Refused how often each was refused for good.
	Counts  map[Action]int `json:"counts"`
	Refused map[Action]int `json:"refused"`
	// Reserved, Charged and Shipped are the effects done less those undone.
	Reserved int `json:"reserved"`
	Charged  int `json:"charged"`
	Shipped  int `json:"shipped"`
	// Amount is the money charged less the money refunded.
	Amount Amount `json:"amount"`
}

// Totals counts over all orders.
type Totals struct {
	// Requests are those that were understood, whatever the answer.
	Requests int `json:"requests"`
	Effects  int `json:"effects"`
	// DuplicatesRefused had a key seen before: the same answer again, and no second effect.
	DuplicatesRefused int `json:"duplicatesRefused"`
	// TombstoneRefusals are forward calls that came after their undo.
	TombstoneRefusals int `json:"tombstoneRefusals"`
	// NothingToUndo are undos of actions that were never done.
	NothingToUndo int `json:"nothingToUndo"`
	// Refused were refused for good: out of stock and the like.
	Refused int           `json:"refused"`
	Faults  map[Fault]int `json:"faults"`
}

func newLedger() Ledger {
	return Ledger{
		Effects:  []Effect{},
		Orders:   map[string]Order{},
		Totals:   Totals{Faults: map[Fault]int{}},
		Requests: map[string]map[int]int{},
	}
}

// clone returns a deep copy.
func (l Ledger) clone() Ledger {
	l.Effects = slices.Clone(l.Effects)
	l.Orders = maps.Clone(l.Orders)
	for id, order := range l.Orders {
		order.Counts, order.Refused = maps.Clone(order.Counts), maps.Clone(order.Refused)
		l.Orders[id] = order
	}
	l.Totals.Faults = maps.Clone(l.Totals.Faults)
	l.Requests = maps.Clone(l.Requests)
	for key, attempts := range l.Requests {
		l.Requests[key] = maps.Clone(attempts)
	}
	return l
}

// order returns the order of this id, ready to be written to.
func (l Ledger) order(id string) Order {
	order, known := l.Orders[id]
	if !known {
		order = Order{Counts: map[Action]int{}, Refused: map[Action]int{}}
	}
	return order
}

// add books an effect.
func (l *Ledger) add(e Effect) {
	l.Effects = append(l.Effects, e)
	l.Totals.Effects++
	order := l.order(e.Order)
	order.Counts[e.Action]++
	order.Reserved = order.Counts[Reserve] - order.Counts[Release]
	order.Charged = order.Counts[Charge] - order.Counts[Refund]
	order.Shipped = order.Counts[Ship] - order.Counts[Cancel]
	switch e.Action {
	case Charge:
		order.Amount += e.Amount
	case Refund:
		order.Amount -= e.Amount
	}
	l.Orders[e.Order] = order
}

// refuse books that an action was refused for good.
func (l *Ledger) refuse(id string, action Action) {
	l.Totals.Refused++
	order := l.order(id)
	order.Refused[action]++
	l.Orders[id] = order
}

// ReadLedger asks the shop at url, such as http://127.0.0.1:4790, for its ledger.
func ReadLedger(ctx context.Context, url string) (Ledger, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ledger", nil)
	if err != nil {
		return Ledger{}, fmt.Errorf("read the ledger of %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return Ledger{}, fmt.Errorf("read the ledger: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Ledger{}, fmt.Errorf("read the ledger of %s: %s", url, answer.Status)
	}
	var l Ledger
	if err := json.NewDecoder(answer.Body).Decode(&l); err != nil {
		return Ledger{}, fmt.Errorf("read the ledger of %s: %w", url, err)
	}
	return l, nil
}
