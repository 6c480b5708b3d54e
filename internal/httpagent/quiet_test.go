package httpagent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

// A service that says when gets no request before, whichever attempt comes; another host, and another account with the
// same one, do.
func TestAServiceThatWantsNoRequestsGetsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		status, after := 429, "40"
		a := NewOver(through(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r.URL.Host+" "+r.Header.Get("Authorization"))
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: io.NopCloser(strings.NewReader(""))}, nil
		}))
		calls := func(host, account string, requests int, want makegood.Duration) {
			t.Helper()
			sent = nil
			_, err := call(t, a, taskOf(t, fields{"url": "https://" + host + "/charge", "headers": map[string]string{"Authorization": account}}))
			failure := makegood.StepError{}
			if err != nil {
				failure = agent.Failure(err)
			}
			if len(sent) != requests || failure.RetryAfter != want || failure.SlowDown != (want > 0) {
				t.Errorf("requests %q, %+v; want %d, and a wait of %v", sent, failure, requests, want)
			}
			if unsent := requests == 0; err != nil && (unsent != (failure.Applied == makegood.AppliedNo) || failure.Kind != fmt.Sprint("http_", status)) {
				t.Errorf("%+v: want it to say whether the request was sent, and kind http_%d", failure, status)
			}
		}
		calls("bank.example", "anna", 1, 40*makegood.Second)
		time.Sleep(10 * time.Second)
		calls("bank.example", "anna", 0, 30*makegood.Second)
		calls("bank.example", "bob", 1, 40*makegood.Second)
		calls("shop.example", "anna", 1, 40*makegood.Second)
		time.Sleep(30 * time.Second)
		status, after = 503, "86400"
		calls("bank.example", "anna", 1, 24*makegood.Hour)
		time.Sleep(limits.MaxSlowDown)
		status = 200
		calls("bank.example", "anna", 1, 0)
	})
}

// Fifty attempts come when a service's time is over: one request goes first. Where it is answered by another pause, no
// other is sent; where it has no answer for a second, or another one, all are.
func TestOneRequestGoesFirstWhenATimeIsOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		takes  time.Duration
		want   int
	}{
		{"it wants another pause", 429, 900 * time.Millisecond, 1},
		{"it answers", 200, 900 * time.Millisecond, 50},
		{"it fails otherwise", 500, 900 * time.Millisecond, 50},
		{"it says nothing for long", 429, 3 * time.Second, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int32
				status, takes := 429, time.Duration(0)
				a := NewOver(through(func(*http.Request) (*http.Response, error) {
					sent.Add(1)
					time.Sleep(takes)
					return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"40"}}, Body: http.NoBody}, nil
				}))
				task := taskOf(t, fields{"url": "https://bank.example/charge"})
				if _, err := call(t, a, task); err == nil {
					t.Fatal("the first request passed, want the pause")
				}
				time.Sleep(40 * time.Second)
				sent.Store(0)
				status, takes = c.status, c.takes
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() { _, _ = call(t, a, task) })
				}
				all.Wait()
				if int(sent.Load()) != c.want {
					t.Errorf("%d requests were sent, want %d", sent.Load(), c.want)
				}
			})
		})
	}
}

// No more services are known than maxQuiet: what wants no requests any more makes room.
func TestServicesThatWantNoRequestsAreForgotten(t *testing.T) {
	var q quiet
	now := time.Now()
	said := agent.SlowDown(time.Minute, errors.New("429"))
	of := func(i int) *http.Request {
		r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("https://s%d.example", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i := range maxQuiet + 1 {
		q.hear(of(i), said, now)
	}
	if len(q.wants) != maxQuiet || q.refuse(t.Context(), of(0)) == nil || q.refuse(t.Context(), of(maxQuiet)) != nil {
		t.Errorf("%d services are known, want %d, and none that came later", len(q.wants), maxQuiet)
	}
	if q.hear(of(maxQuiet), said, now.Add(time.Minute)); len(q.wants) != 1 {
		t.Errorf("%d services are known when their times are over, want the one that came", len(q.wants))
	}
}
