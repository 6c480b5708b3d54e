package httpagent

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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

// No more services are known than maxQuiet: what wants no requests any more makes room.
func TestServicesThatWantNoRequestsAreForgotten(t *testing.T) {
	var q quiet
	now := time.Now()
	said := makegood.StepError{SlowDown: true, RetryAfter: makegood.Minute, Kind: "http_429"}
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
	if len(q.wants) != maxQuiet || q.refuse(of(0), now) == nil || q.refuse(of(maxQuiet), now) != nil {
		t.Errorf("%d services are known, want %d, and none that came later", len(q.wants), maxQuiet)
	}
	if q.hear(of(maxQuiet), said, now.Add(time.Minute)); len(q.wants) != 1 {
		t.Errorf("%d services are known when their times are over, want the one that came", len(q.wants))
	}
}
