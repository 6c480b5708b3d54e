package agency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// readHeaders is how long a caller may take for the head of a request.
const readHeaders = 10 * time.Second

// server is a service at an address, which listens there unless it refuses connections.
type server struct {
	handler http.Handler

	mu   sync.Mutex
	addr string
	runs *http.Server // nil: it does not listen
}

// Serve serves a service at an address, port 0 takes a free one, until Close. It returns the URL.
func (a *Agency) Serve(ctx context.Context, service, addr string) (url string, err error) {
	s := &server{handler: a.Handler(service), addr: addr}
	if err := s.open(ctx); err != nil {
		return "", fmt.Errorf("serve %s: %w", service, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = append(a.servers, s)
	a.hooks[service] = func(o Outage) error {
		if o == Refuses {
			return s.close()
		}
		return s.open(ctx)
	}
	return "http://" + s.addr, nil
}

// Close ends what Serve began.
func (a *Agency) Close() error {
	a.mu.Lock()
	servers := a.servers
	a.servers, a.hooks = nil, map[string]func(Outage) error{}
	a.mu.Unlock()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// open listens, if s does not, at the address that it had before.
func (s *server) open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs != nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	runs := &http.Server{Handler: s.handler, ReadHeaderTimeout: readHeaders}
	s.addr, s.runs = listener.Addr().String(), runs
	go func() { _ = runs.Serve(listener) }() // It ends with close.
	return nil
}

// close breaks all connections, and takes no more.
func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		return nil
	}
	runs := s.runs
	s.runs = nil
	return runs.Close()
}

// Switchboard shows the ledger, and begins and ends outages:
//
//	GET /ledger
//	PUT /outages/hotels?how=hangs     errors, refuses, hangs, loses; without how it ends
func (a *Agency) Switchboard() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		for _, line := range a.Ledger() {
			if e.Encode(line) != nil {
				return // The caller went away.
			}
		}
	})
	mux.HandleFunc("PUT /outages/{service}", func(w http.ResponseWriter, r *http.Request) {
		service, how := r.PathValue("service"), r.FormValue("how")
		if err := a.Break(service, Outage(how)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if how == "" {
			how = "up"
		}
		fmt.Fprintln(w, service+": "+how)
	})
	return mux
}
