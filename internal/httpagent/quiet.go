package httpagent

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

// maxQuiet is how many services are known at once to want no requests: of further ones each answer delays its own
// attempt alone.
const maxQuiet = 1000

// quiet has the services that want no requests for a time. A service is a host, with the credentials of the request:
// most count by these, and no tenant is to wait for another's. It is the memory of one process.
type quiet struct {
	mu    sync.Mutex
	wants map[[sha256.Size]byte]want
}

// want is a service's wish for no requests, and the kind of the error by which it said so.
type want struct {
	until time.Time
	kind  string
}

// service is what a request goes to.
func service(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.URL.Scheme + "://" + r.URL.Host + "\n" + r.Header.Get("Authorization")))
}

// refuse returns an error, surely not applied, for a request to a service that wants none yet.
func (q *quiet) refuse(r *http.Request, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.wants[service(r)]
	if !now.Before(w.until) {
		return nil
	}
	err := fmt.Errorf("not sent: the service wants no requests until %s (%s)", w.until.UTC().Format(time.RFC3339), w.kind)
	return agent.SlowDown(w.until.Sub(now), agent.NotApplied(agent.Kind(w.kind, about(r, err))))
}

// hear notes what a service said of further requests, if it did, for at most limits.MaxSlowDown.
func (q *quiet) hear(r *http.Request, said makegood.StepError, now time.Time) {
	if !said.SlowDown {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.wants) >= maxQuiet {
		maps.DeleteFunc(q.wants, func(_ [sha256.Size]byte, w want) bool { return !now.Before(w.until) })
	}
	until := now.Add(min(said.RetryAfter.Std(), limits.MaxSlowDown))
	of := service(r)
	if was, known := q.wants[of]; !known && len(q.wants) >= maxQuiet || until.Before(was.until) {
		return
	}
	if q.wants == nil {
		q.wants = map[[sha256.Size]byte]want{}
	}
	q.wants[of] = want{until, said.Kind}
}
