package services

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// maxBody is how many bytes of a request are read.
	maxBody = 1 << 20
	// maxKey is how many bytes an order's id and a key may each have.
	maxKey = 512
	// retryAfter is what a Busy answer asks for, in seconds.
	retryAfter = 1
	// defaultLate is how long after the caller has gone the effect of HangsLate is made.
	defaultLate = 300 * time.Millisecond
)

// Options of a shop. The zero value is a shop without faults.
type Options struct {
	Script Script
	// CountOnly makes a shop that remembers no key: every request takes effect. What a caller asks
	// for twice is then in the ledger twice.
	CountOnly bool
	// Late is how long after the caller has gone the effect of HangsLate is made. Default: 300 ms.
	Late time.Duration
	// Record is told of every effect, in their order, one at a time. It must not call the shop.
	Record func(Effect)
}

// Server is a shop that is open.
type Server struct {
	books *books
	late  time.Duration
	http  *http.Server
	addr  string

	// open ends at Close, and with it everything that hangs.
	open   context.Context
	finish context.CancelFunc
	// working is held for reading by whatever still works on a request.
	working sync.RWMutex
	served  chan error
}

// Start opens a shop at addr, such as "127.0.0.1:4790"; port 0 takes a free one. It refuses an address that is not
// loopback: the shop obeys every caller.
func Start(addr string, o Options) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("open the shop: %w", err)
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("open the shop at %s: want a loopback address, such as 127.0.0.1:4790", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open the shop: %w", err)
	}
	o.Late = cmp.Or(o.Late, defaultLate)
	open, finish := context.WithCancel(context.Background())
	s := &Server{
		books: newBooks(o), late: o.Late, addr: listener.Addr().String(),
		open: open, finish: finish, served: make(chan error, 1),
	}
	s.http = &http.Server{
		Handler:           s.routes(),
		BaseContext:       func(net.Listener) context.Context { return open },
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		defer close(s.served)
		s.served <- s.http.Serve(listener)
	}()
	return s, nil
}

// Handler returns a shop without an address, for callers that serve it themselves, as a function does. It is never
// closed: a hanging call ends with its request.
func Handler(o Options) http.Handler {
	o.Late = cmp.Or(o.Late, defaultLate)
	s := &Server{books: newBooks(o), late: o.Late, open: context.Background()}
	return s.routes()
}

// URL is where the shop is, without a slash behind it.
func (s *Server) URL() string { return "http://" + s.addr }

// Ledger returns what the shop knows now, as GET /ledger does.
func (s *Server) Ledger() Ledger { return s.books.snapshot() }

// Close closes the shop. Hanging requests end at once and without effect; when Close returns, the ledger stays as it
// is. Closing a closed shop has no effect.
func (s *Server) Close() error {
	s.finish()
	err := s.http.Close()
	if stopped, first := <-s.served; first && !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	s.working.Lock()
	defer s.working.Unlock()
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, action := range Actions() {
		mux.HandleFunc("POST "+action.Path(), func(w http.ResponseWriter, r *http.Request) {
			s.working.RLock()
			defer s.working.RUnlock()
			s.serve(w, r, action)
		})
	}
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// A caller that goes away while reading has only itself to blame.
		_ = json.NewEncoder(w).Encode(s.Ledger())
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		s.books.reset()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, action Action) {
	c, err := readCall(r, action)
	if err != nil {
		respond(w, problem(http.StatusBadRequest, err.Error()))
		return
	}
	switch fault := s.books.arrive(c); fault {
	case NoFault:
		respond(w, s.books.apply(c))
	case Fails:
		respond(w, problem(http.StatusInternalServerError, "out of order"))
	case Busy:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		respond(w, problem(http.StatusServiceUnavailable, "busy"))
	case Throttled:
		respond(w, problem(http.StatusTooManyRequests, "too many requests"))
	case Hangs:
		hang(r)
		hangUp()
	case HangsAfter:
		hang(r)
		s.applyAfter(c, 0)
		hangUp()
	case HangsLate:
		hang(r)
		s.applyAfter(c, s.late)
		hangUp()
	case HangsUp:
		hangUp()
	case HangsUpThen:
		s.books.apply(c)
		hangUp()
	case Twice:
		s.answerTwice(w, s.books.apply(c))
	default:
		panic(fmt.Sprintf("services: fault %q", fault))
	}
}

// readCall reads a request, or returns its fault.
func readCall(r *http.Request, action Action) (call, error) {
	// Read to the end: only then does the server watch the connection for the caller's going.
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return call{}, fmt.Errorf("read the request: %w", err)
	}
	if len(text) > maxBody {
		return call{}, fmt.Errorf("the request is larger than %d bytes", maxBody)
	}
	var body struct {
		Order  string `json:"order"`
		Line   int    `json:"line"`
		Amount Amount `json:"amount"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return call{}, fmt.Errorf("read the request: %w", err)
	}
	c := call{
		action: action, order: body.Order, line: body.Line, amount: body.Amount,
		key: r.Header.Get("Idempotency-Key"), forwardKey: r.Header.Get("Makegood-Forward-Key"),
	}
	c.attempt, err = strconv.Atoi(r.Header.Get("Makegood-Attempt"))
	switch {
	case c.order == "" || len(c.order) > maxKey:
		return call{}, fmt.Errorf("order: want an id of 1 to %d bytes", maxKey)
	case c.line < 0:
		return call{}, errors.New("line: want at least 0")
	case c.amount < 0:
		return call{}, errors.New("amount: want at least 0")
	case c.key == "" || len(c.key) > maxKey:
		return call{}, fmt.Errorf("Idempotency-Key: want 1 to %d bytes", maxKey)
	case err != nil || c.attempt < 1:
		return call{}, errors.New("Makegood-Attempt: want a number from 1")
	case action.Undoes() != "" && c.forwardKey == "":
		return call{}, fmt.Errorf("Makegood-Forward-Key: want the key of the %s to be undone", action.Undoes())
	}
	return c, nil
}

func respond(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	// The caller may have gone; its next attempt is told the same.
	_, _ = w.Write(a.body)
}
