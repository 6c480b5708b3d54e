package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/examples/travel/agency"
	"github.com/makegood-dev/makegood/examples/travel/trips"
)

const (
	// readHeaders is how long a caller may take for the head of a request, and maxTrip how many bytes of a trip are read.
	readHeaders = 10 * time.Second
	maxTrip     = 4 << 10
)

// serveAgency serves the services and their switchboard until ctx ends.
func serveAgency(ctx context.Context, out io.Writer) error {
	a := agency.New()
	for service, addr := range map[string]string{"flights": flightsAddr, "hotels": hotelsAddr, "cars": carsAddr, "payments": paymentsAddr} {
		if _, err := a.Serve(ctx, service, addr); err != nil {
			return errors.Join(err, a.Close())
		}
	}
	fmt.Fprintf(out, "flights, hotels, cars and payments are at %s, %s, %s and %s, their switchboard at http://%s\n",
		flightsAddr, hotelsAddr, carsAddr, paymentsAddr, switchboardAddr)
	return errors.Join(serve(ctx, switchboardAddr, a.Switchboard(), nil), a.Close())
}

// serve serves at an address until ctx ends, and says at which, once.
func serve(ctx context.Context, addr string, h http.Handler, at func(addr string)) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if at != nil {
		at(listener.Addr().String())
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: readHeaders}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// office is the agency's own server: its trips, and below /makegood/ the page and the API of their jobs.
type office struct {
	addr, data string
	urls       trips.Urls
	out        io.Writer
}

// serve opens the engine and serves until ctx ends.
func (o *office) serve(ctx context.Context) error {
	options := engine.Options{Dir: o.data, Workflows: trips.Files, Agents: trips.Agents(o.urls, http.DefaultClient)}
	for _, name := range trips.Outside {
		options.Outside = append(options.Outside, engine.Outside{Name: name})
	}
	eng, err := engine.Open(ctx, options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	runs := make(chan error, 1)
	go func() {
		defer cancel() // Without its engine the server is of no use.
		runs <- eng.Run(ctx)
	}()
	err = serve(ctx, o.addr, routes(eng), func(addr string) {
		fmt.Fprintf(o.out, "office: http://%s (its jobs: http://%s/makegood/)\n", addr, addr)
	})
	cancel()
	return errors.Join(err, <-runs, eng.Close())
}

func routes(eng *engine.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
	mux.HandleFunc("PUT /trips/{id}", func(w http.ResponseWriter, r *http.Request) { bookTrip(w, r, eng) })
	mux.HandleFunc("GET /trips/{id}", func(w http.ResponseWriter, r *http.Request) {
		job, err := eng.Get(r.Context(), r.PathValue("id"))
		tell(w, job, err)
	})
	return mux
}

// bookTrip submits a trip under the id that the caller has given it, so that a caller may ask again.
func bookTrip(w http.ResponseWriter, r *http.Request, eng *engine.Engine) {
	input, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTrip))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	job, err := eng.Submit(r.Context(), makegood.Submission{Workflow: "trip", ID: r.PathValue("id"), Input: input})
	tell(w, job, err)
}

// told is the office's answer about a trip.
type told struct {
	State  makegood.ProcessState `json:"state"`
	Reason string                `json:"reason,omitempty"`
}

func tell(w http.ResponseWriter, job makegood.Job, err error) {
	var invalid *api.InvalidError
	switch {
	case errors.Is(err, api.ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.As(err, &invalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(told{job.ProcessState, job.Reason}) // The caller may have gone away.
	}
}
