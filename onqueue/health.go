package onqueue

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood/internal/agentrun"
)

// health is what GET /health says.
type health struct {
	// Status is ok, stopping, or "the queue cannot be reached".
	Status      string    `json:"status"`
	Agent       string    `json:"agent"`
	Working     int64     `json:"working"`
	Concurrency int       `json:"concurrency"`
	LastPoll    time.Time `json:"lastPoll"`
	Claimed     int64     `json:"claimed"`
	Succeeded   int64     `json:"succeeded"`
	Failed      int64     `json:"failed"`
	Late        int64     `json:"late"`
}

// readWithin is how long a request for health may take to come in.
const readWithin = 5 * time.Second

// serveHealth answers on a listener until the function that it returns is called.
func serveHealth(listener net.Listener, name string, p *poller, runner *agentrun.Runner, log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		h := p.health(time.Now())
		stats := runner.Stats()
		h.Agent, h.Claimed, h.Succeeded, h.Failed, h.Late = name, stats.Claimed, stats.Succeeded, stats.Failed, stats.Late
		w.Header().Set("Content-Type", "application/json")
		if h.Status != healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the caller has gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, WriteTimeout: readWithin}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health is not served any more", "error", err)
		}
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

const healthy = "ok"

func (p *poller) health(now time.Time) health {
	h := health{
		Status: healthy, Working: p.slots.Working(), Concurrency: p.options.Concurrency, LastPoll: time.Unix(0, p.polled.Load()).UTC(),
	}
	// No poll runs while all slots are taken, which is healthy.
	full := p.slots.Full()
	switch {
	case p.stopping.Load():
		h.Status = "stopping"
	case !full && now.Sub(h.LastPoll) > sickAfter:
		h.Status = "the queue cannot be reached"
	}
	return h
}
