//go:build aws && linux

package lambda

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/release"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

// service is an HTTP server that the sample's agents call, in the place of the shop. It notes each call.
type service struct {
	url string
	// work is how long a call takes that succeeds. One that begins while gather is not zero takes as long as that many
	// are not under way at once, if that is longer, but not longer than gathering.
	work   time.Duration
	gather atomic.Int64
	// ill: the inventory answers 503.
	ill atomic.Bool

	mu    sync.Mutex
	calls []*visit
}

// visit is a call of an attempt.
type visit struct {
	path, job string
	attempt   int
	began     time.Time
	// ended is when it was answered, or when its caller was gone; zero: it is under way.
	ended time.Time
	// status is that of the answer; zero: its caller was gone before it.
	status int
}

func startService(t *testing.T, work time.Duration) *service {
	s := &service{work: work}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // The server only notices that the caller is gone when the body was read.
	job, _, _ := strings.Cut(r.Header.Get("Idempotency-Key"), "/")
	attempt, _ := strconv.Atoi(r.Header.Get("Makegood-Attempt"))
	c := &visit{path: r.URL.Path, job: job, attempt: attempt, began: time.Now()}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	status := http.StatusOK
	if s.ill.Load() && strings.HasPrefix(c.path, "/inventory/") {
		status = http.StatusServiceUnavailable
	} else {
		status = s.answer(r.Context())
	}
	s.mu.Lock()
	c.ended, c.status = time.Now(), status
	s.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, `{"action":"done"}`)
	}
}

// gathering is how long a call may wait for others: less than the timeout of its attempt.
const gathering = 2500 * time.Millisecond

// answer returns the status of a call when it is over; zero: its caller was gone before.
func (s *service) answer(ctx context.Context) (status int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < s.work || time.Since(began) < gathering && s.underWay() < int(s.gather.Load()); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0
		}
	}
	return http.StatusOK
}

// those returns copies of the calls for which is says yes, in the order in which they began.
func (s *service) those(is func(visit) bool) (all []visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if is(*c) {
			all = append(all, *c)
		}
	}
	return all
}

// underWay is how many calls are.
func (s *service) underWay() int {
	return len(s.those(func(c visit) bool { return c.ended.IsZero() }))
}

// knock serves the shipped function of the doors as each door, and returns a client of the stack.
func (w *world) knock() *client.Client {
	w.t.Helper()
	from, built := need(release.This())(w.t), w.t.TempDir()
	address := map[httpapi.Door]string{}
	for _, door := range httpapi.Doors() {
		environment := append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_DOOR="+string(door))
		f := w.host.Function(lambdahost.Config{
			Name: "door-" + string(door), Command: []string{build(w.t, from, built, "door")}, Timeout: timeout,
			Environment: append(environment, iam.Key(iam.Role("door", environment))),
		})
		server := httptest.NewServer(f.URL(standin.Region, map[string]functionurl.Key{"ada": {Secret: "secret", ARN: "arn:aws:iam::000000000000:user/ada"}}))
		w.t.Cleanup(server.Close)
		address[door] = server.URL
	}
	c, err := doors.New(doors.Config{
		AWS:   aws.Config{Region: standin.Region, Credentials: credentials.NewStaticCredentialsProvider("ada", "secret", "")},
		Stack: strings.TrimSuffix(w.prefix, "-"), Addresses: doors.Addresses{Submit: address[httpapi.Submit], Read: address[httpapi.Read], Operate: address[httpapi.Operate]},
	}, client.WithPatience(patience))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// accounts are those of the jobs, one after the other. A job without an account is one of null.
var accounts = []string{`"a"`, `"b"`, `"c"`, `"d"`, `"e"`, "null"}

// account is that of the i-th job of those that are submitted together.
func account(i int) string { return accounts[i%len(accounts)] }

// publish publishes a workflow of one step, and returns what submits so many jobs of it and returns their ids, which
// begin with a word.
func (w *world) publish(c *client.Client, name, step string) (submit func(word string, jobs int) []string) {
	w.t.Helper()
	if _, err := c.Publish(w.t.Context(), fmt.Appendf(nil, "name: %s\nonFailure: stop\nsteps:\n  - {%s, with: {order: \"${ .job.id }\", amount: 1}, undo: none}\n", name, step)); err != nil {
		w.t.Fatal(err)
	}
	return func(word string, jobs int) (ids []string) {
		w.t.Helper()
		for i := range jobs {
			ids = append(ids, fmt.Sprintf("%s-%03d", word, i))
			if _, err := c.Submit(w.t.Context(), makegood.Submission{Workflow: name, ID: ids[i], Input: fmt.Appendf(nil, `{"account":%s}`, account(i))}); err != nil {
				w.t.Fatal(err)
			}
		}
		return ids
	}
}

// hold returns the pause or the limit of an agent, as a client sees it; the zero value: it has none.
func (w *world) hold(c *client.Client, agent string) makegood.Hold {
	w.t.Helper()
	all, err := c.ListHolds(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range all {
		if h.Name == agent {
			return h
		}
	}
	return makegood.Hold{}
}

// kill kills a process of a function that is at work.
func (w *world) kill(function string) {
	w.t.Helper()
	w.waitFor("the "+function+" to be at work", func() bool { return w.functions[function].Signal(syscall.SIGKILL, rand.IntN) })
}
