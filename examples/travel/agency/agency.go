// Package agency is the remote services of the travel example: flights, hotels, cars and payments. Each keeps a
// ledger, serves each key once, and has outages that are switched on and off.
package agency

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Services are their names.
var Services = []string{"flights", "hotels", "cars", "payments"}

// Outage is the way in which a service fails.
type Outage string

// The outages. Up is none.
const (
	Up      Outage = ""
	Errors  Outage = "errors"  // It answers 503.
	Refuses Outage = "refuses" // It takes no connection.
	Hangs   Outage = "hangs"   // It takes the request, and answers never.
	Loses   Outage = "loses"   // It does the work, and breaks the connection.
)

// SoldOut is what every service refuses to book.
const SoldOut = "sold out"

// maxBody is how many bytes of a request are read.
const maxBody = 4 << 10

// Line is a booking, or a charge, in the ledger of a service. A canceled one stays there.
type Line struct {
	Service, Key, Ref string
	Trip              string
	What              string
	Cents             int
	Canceled          bool
}

// Totals count the requests of a service.
type Totals struct {
	// Failed are the requests that met an outage, Again those with a key that was answered before, and Late those that
	// came after their undo, and were refused.
	Failed, Again, Late int
}

// Agency is all services. Make it with New.
type Agency struct {
	mu     sync.Mutex
	lines  map[string]*Line // by key
	order  []*Line
	closed map[string]bool // keys that were undone
	outage map[string]Outage
	totals map[string]Totals
	// hooks are told of the outage of a service that is served at an address.
	hooks   map[string]func(Outage) error
	servers []*server
}

// New opens an agency without bookings, with all services up.
func New() *Agency {
	return &Agency{
		lines: map[string]*Line{}, closed: map[string]bool{}, outage: map[string]Outage{}, totals: map[string]Totals{},
		hooks: map[string]func(Outage) error{},
	}
}

// Break begins an outage of a service; Up ends it.
func (a *Agency) Break(service string, o Outage) error {
	if !slices.Contains(Services, service) {
		return fmt.Errorf("there is no service %q: want one of %s", service, strings.Join(Services, ", "))
	}
	if all := []Outage{Up, Errors, Refuses, Hangs, Loses}; !slices.Contains(all, o) {
		return fmt.Errorf("there is no outage %q: want one of errors, refuses, hangs, loses, or none", o)
	}
	a.mu.Lock()
	a.outage[service] = o
	hook := a.hooks[service]
	a.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(o)
}

// Ledger returns a copy of all lines, in the order in which they were booked.
func (a *Agency) Ledger() []Line {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := []Line{}
	for _, line := range a.order {
		lines = append(lines, *line)
	}
	return lines
}

// Totals returns the counts of a service.
func (a *Agency) Totals(service string) Totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.totals[service]
}

// call is a request that was understood.
type call struct {
	service, key, forwardKey string

	Trip, What string
	Cents      int
}

// Handler is a service. In a test without a network it is behind makegoodtest.Client.
func (a *Agency) Handler(service string) http.Handler {
	mux := http.NewServeMux()
	for path, do := range map[string]func(call) (Line, int){
		"POST /book": a.book, "POST /charge": a.book, "POST /cancel": a.cancel, "POST /refund": a.cancel,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, service, do) })
	}
	return mux
}

func (a *Agency) serve(w http.ResponseWriter, r *http.Request, service string, do func(call) (Line, int)) {
	c := call{service: service, key: r.Header.Get("Idempotency-Key"), forwardKey: r.Header.Get("Makegood-Forward-Key")}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&c); err != nil || c.Trip == "" || c.key == "" {
		http.Error(w, "want a trip, and an Idempotency-Key", http.StatusBadRequest)
		return
	}
	switch a.met(service) {
	case Errors:
		http.Error(w, "no service today", http.StatusServiceUnavailable)
		return
	case Refuses:
		panic(http.ErrAbortHandler) // A connection that was there before the outage ends, too.
	case Hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case Loses:
		do(c)
		panic(http.ErrAbortHandler)
	}
	line, status := do(c)
	if status >= 400 {
		http.Error(w, fmt.Sprintf("%s: %s", service, http.StatusText(status)), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"ref":%q}`, line.Ref)
}

// met returns the outage that a request meets, and counts it.
func (a *Agency) met(service string) Outage {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.outage[service]
	if o != Up {
		t := a.totals[service]
		t.Failed++
		a.totals[service] = t
	}
	return o
}

// book books once for a key. An undone key is refused for ever: the request was held up on its way.
func (a *Agency) book(c call) (Line, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.totals[c.service]
	defer func() { a.totals[c.service] = t }()
	switch line := a.lines[c.key]; {
	case a.closed[c.key]:
		t.Late++
		return Line{}, http.StatusGone
	case line != nil:
		t.Again++
		return *line, http.StatusOK
	case c.What == SoldOut:
		return Line{}, http.StatusConflict
	}
	line := &Line{Service: c.service, Key: c.key, Ref: fmt.Sprintf("%s-%d", c.service, len(a.order)+1), Trip: c.Trip, What: c.What, Cents: c.Cents}
	a.lines[c.key] = line
	a.order = append(a.order, line)
	return *line, http.StatusOK
}

// cancel takes back the booking of the forward key, if there is one, and refuses the key from then on.
func (a *Agency) cancel(c call) (Line, int) {
	if c.forwardKey == "" {
		return Line{}, http.StatusBadRequest
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed[c.forwardKey] = true
	line := a.lines[c.forwardKey]
	if line == nil {
		return Line{}, http.StatusOK
	}
	line.Canceled = true
	return *line, http.StatusOK
}
