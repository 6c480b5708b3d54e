package httpagent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

// maxQuiet is how many services are known at once to want no requests: of further ones each answer delays its own
// attempt alone.
const maxQuiet = 1000

// trialTime is how long requests wait for the answer of the one that goes first when a service's time is over.
const trialTime = time.Second

// quiet has the services that want no requests for a time. A service is a host, with the credentials of the request:
// most count by these, and no tenant is to wait for another's. It is the memory of one process.
type quiet struct {
	mu    sync.Mutex
	wants map[[sha256.Size]byte]want
}

// want is a service's wish for no requests, and the kind of the error by which it said so. When its time is over one
// request goes first, and first is closed when that has its answer.
type want struct {
	until time.Time
	kind  string
	first chan struct{}
}

// service is what a request goes to.
func service(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.URL.Scheme + "://" + r.URL.Host + "\n" + r.Header.Get("Authorization")))
}

// refuse returns an error, surely not applied, for a request to a service that wants none yet. When the time is over
// one request goes first, and the others wait for its answer, for at most trialTime.
func (q *quiet) refuse(ctx context.Context, r *http.Request) error {
	first, err := q.ask(r, time.Now())
	if first == nil {
		return err
	}
	select {
	case <-first:
		_, err = q.ask(r, time.Now())
	case <-time.After(trialTime):
	case <-ctx.Done():
	}
	return err
}

// ask is refuse, and returns the end of another request that has gone first, if one has.
func (q *quiet) ask(r *http.Request, now time.Time) (first <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, known := q.wants[service(r)]
	switch {
	case !known:
		return nil, nil
	case now.Before(w.until):
		err = fmt.Errorf("not sent: the service wants no requests until %s (%s)", w.until.UTC().Format(time.RFC3339), w.kind)
		return nil, agent.SlowDown(w.until.Sub(now), agent.NotApplied(agent.Kind(w.kind, about(r, err))))
	case w.first == nil:
		w.first = make(chan struct{})
		q.wants[service(r)] = w
		return nil, nil
	default:
		return w.first, nil
	}
}

// hear notes that a request has its answer, and the pause that the service asked for, if it did, of at most
// limits.MaxSlowDown.
func (q *quiet) hear(r *http.Request, answer error, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := service(r)
	was, known := q.wants[of]
	if was.first != nil {
		close(was.first)
		delete(q.wants, of)
	}
	if answer == nil {
		return
	}
	said := agent.Failure(answer)
	until := now.Add(min(said.RetryAfter.Std(), limits.MaxSlowDown))
	if !said.SlowDown || until.Before(was.until) {
		return
	}
	if len(q.wants) >= maxQuiet {
		maps.DeleteFunc(q.wants, func(_ [sha256.Size]byte, w want) bool { return !now.Before(w.until) })
	}
	if !known && len(q.wants) >= maxQuiet {
		return
	}
	if q.wants == nil {
		q.wants = map[[sha256.Size]byte]want{}
	}
	q.wants[of] = want{until: until, kind: said.Kind}
}
