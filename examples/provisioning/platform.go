package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// maxBody is how many bytes of a request are read.
	maxBody = 1 << 10
	// taken is the prefix of subscriptions with a DNS name of another customer: it is refused in every round.
	taken = "taken-"
)

// resources are what a subscription has one of each.
var resources = []string{"namespace", "access", "dns"}

// platform knows which resources are active. It obeys its callers' keys, each once.
type platform struct {
	slow     time.Duration
	refusals int

	mu sync.Mutex
	// answers are the answered statuses by key; a repeated key gets the same one, without effect. After the undo of a
	// key, further calls under it are refused.
	answers map[string]int
	undone  map[string]bool
	// active are the resources by subscription, refused how often the DNS name of one was.
	active  map[string]map[string]bool
	refused map[string]int
	totals  totals
}

// totals count the events. Twice should be 0: it counts activations of active resources.
type totals struct {
	Activated, Deactivated, Twice, AgainByKey, RefusedAfterUndo int
}

// report is all that the platform knows at one moment.
type report struct {
	// Subscriptions are the active resources of each subscription, in the order of their steps.
	Subscriptions map[string][]string `json:"subscriptions"`
	Totals        totals              `json:"totals"`
}

func (p *platform) routes() http.Handler {
	p.answers, p.undone = map[string]int{}, map[string]bool{}
	p.active, p.refused = map[string]map[string]bool{}, map[string]int{}
	mux := http.NewServeMux()
	for _, resource := range resources {
		mux.HandleFunc("POST /"+resource+"/activate", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, resource, p.activate) })
		mux.HandleFunc("POST /"+resource+"/deactivate", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, resource, p.deactivate) })
	}
	mux.HandleFunc("GET /subscriptions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.report()) // a caller that goes away has only itself to blame
	})
	return mux
}

// call is a request that was understood.
type call struct{ resource, subscription, key, forwardKey string }

func (p *platform) serve(w http.ResponseWriter, r *http.Request, resource string, do func(call) int) {
	var body struct {
		Subscription string `json:"subscription"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&body)
	c := call{resource, body.Subscription, r.Header.Get("Idempotency-Key"), r.Header.Get("Makegood-Forward-Key")}
	if err != nil || c.subscription == "" || c.key == "" {
		http.Error(w, `{"error":"want a subscription, and an Idempotency-Key"}`, http.StatusBadRequest)
		return
	}
	if resource == "namespace" {
		select {
		case <-time.After(p.slow):
		case <-r.Context().Done():
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	status, known := p.answers[c.key]
	if known {
		p.totals.AgainByKey++
	} else {
		status = do(c)
		p.answers[c.key] = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"resource":%q,"status":%d}`, resource, status)
}

// activate makes a resource active. A DNS name is refused at first, or always. p.mu is held.
func (p *platform) activate(c call) int {
	switch {
	case p.undone[c.key]:
		p.totals.RefusedAfterUndo++
		return http.StatusGone
	case c.resource == "dns" && (p.refused[c.subscription] < p.refusals || strings.HasPrefix(c.subscription, taken)):
		p.refused[c.subscription]++
		return http.StatusConflict
	}
	if p.active[c.subscription] == nil {
		p.active[c.subscription] = map[string]bool{}
	}
	if p.active[c.subscription][c.resource] {
		p.totals.Twice++
	}
	p.active[c.subscription][c.resource] = true
	p.totals.Activated++
	return http.StatusOK
}

// deactivate makes a resource inactive, and sees to it that a call which is still on its way to activate it comes too
// late. p.mu is held.
func (p *platform) deactivate(c call) int {
	p.undone[c.forwardKey] = true
	if !p.active[c.subscription][c.resource] {
		return http.StatusNotFound // which is as good: there is no effect to undo
	}
	delete(p.active[c.subscription], c.resource)
	p.totals.Deactivated++
	return http.StatusOK
}

func (p *platform) report() report {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := report{Subscriptions: map[string][]string{}, Totals: p.totals}
	for subscription, active := range p.active {
		all.Subscriptions[subscription] = []string{}
		for _, resource := range resources {
			if active[resource] {
				all.Subscriptions[subscription] = append(all.Subscriptions[subscription], resource)
			}
		}
	}
	return all
}
