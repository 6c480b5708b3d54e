// Command server is the agency's own HTTP server: the bookings that stand, and below /makegood/ its jobs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/makegood-dev/makegood/engine"

	"example.com/travel"
)

func main() {
	data := flag.String("data", "", "folder that keeps the jobs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *data); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves on a free port, which it prints, until ctx ends.
func serve(ctx context.Context, data string) error {
	agency := travel.Open()
	eng, err := engine.Open(ctx, engine.Options{Dir: data, Workflows: travel.Files, Agents: agency.Agents()})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, eng.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
	mux.HandleFunc("GET /bookings/{trip}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(agency.Bookings(r.PathValue("trip"))) // else nobody listens any more
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	fmt.Println("http://" + listener.Addr().String())
	return errors.Join(eng.Run(ctx), server.Close(), eng.Close())
}
