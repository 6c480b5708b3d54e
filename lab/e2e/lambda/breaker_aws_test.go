//go:build aws && linux

package lambda

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// topic keeps the messages that were published to an SNS topic.
type topic struct {
	mu       sync.Mutex
	messages []string
}

// ServeHTTP implements http.Handler.
func (p *topic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.messages = append(p.messages, r.PostFormValue("Message"))
	p.mu.Unlock()
	_, _ = fmt.Fprint(w, "<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>")
}

// The service of an agent is down, and the Scheduler's processes see some failures each. The breaker pauses the agent:
// from then on only probes call the service, the first in vain. It is well again, a probe finds that, and every job is
// done. The jobs of another agent go on all the time, and an operator is told once.
func TestAnOutagePausesAnAgentOfAStack(t *testing.T) {
	t.Parallel()
	s, alerts := startService(t, 0), &topic{}
	sns := httptest.NewServer(alerts)
	t.Cleanup(sns.Close)
	w := open(t, options{ticks: everyOther, sns: sns.URL, environment: []string{
		"MAKEGOOD_SHOP=" + s.url, "MAKEGOOD_BREAKERS=inventory", "MAKEGOOD_ALERT_TOPIC=arn:aws:sns:" + standin.Region + ":000000000000:alerts",
	}})
	c := w.knock()
	submit := w.publish(c, "held", "name: reserve, agent: inventory, timeout: 4s, retry: {attempts: 10, backoff: 10s, max: 10s}")
	beside := w.publish(c, "beside", "name: ship, agent: shipping, timeout: 4s")

	s.ill.Store(true)
	ids := submit("early", 40) // With 37 some of four processes has seen ten.
	others := beside("before", 10)
	w.waitFor("the breaker", func() bool { return w.hold(c, "inventory").Tripped })
	since := w.hold(c, "inventory").Since
	ids = append(ids, submit("late", 10)...)
	others = append(others, beside("after", 10)...)
	for id, j := range w.ends(others) {
		if j.ProcessState != makegood.JobProcessed || j.FailureCount > 0 {
			t.Errorf("%s of the other agent is %s after %d failures, want Processed after none", id, j.ProcessState, j.FailureCount)
		}
	}
	w.waitFor("a probe in vain", func() bool {
		return slices.ContainsFunc(w.paused(), func(h job.Hold) bool {
			return h.Probes > 0 && len(s.those(func(v visit) bool {
				return v.job == h.Probe && v.began.After(since.Add(limits.FirstProbe)) && v.status == http.StatusServiceUnavailable
			})) > 0
		})
	})
	s.ill.Store(false)
	healed := time.Now()
	var over makegood.Hold
	w.waitFor("a probe that succeeds", func() bool {
		over = w.hold(c, "inventory")
		return over.ReleasedAt != nil
	})

	for id, j := range w.ends(ids) {
		if j.ProcessState != makegood.JobProcessed {
			t.Errorf("%s is %s (%s), want Processed", id, j.ProcessState, j.Reason)
		}
	}
	during := func(from, to time.Time) int {
		return len(s.those(func(v visit) bool {
			return strings.HasPrefix(v.path, "/inventory/") && v.began.After(from) && v.began.Before(to)
		}))
	}
	probes, calls := during(since.Add(known), *over.ReleasedAt), during(time.Time{}, healed)
	t.Logf("%d calls while it was down, %d before the pause and %d by probes; %d probes; done after %v\n%s", calls, during(time.Time{}, since), probes, over.Probes, time.Since(since).Round(time.Second), w.said())
	if probes > over.Probes || over.Probes < 2 || over.ReleasedBy != "breaker" {
		t.Errorf("%d calls came after each process knew of the pause, and %d probes were made; resumed by %q", probes, over.Probes, over.ReleasedBy)
	}
	// A process trips the breaker by the tenth failure that it sees, in a batch of ten at most; each job has one attempt out.
	if n, most := during(time.Time{}, since), 20*int(w.functions["scheduler"].Counts.ColdStarts.Load())+len(ids); n > most {
		t.Errorf("%d calls came before the pause, want %d at most", n, most)
	}
	alerts.mu.Lock()
	defer alerts.mu.Unlock()
	if len(alerts.messages) != 1 || !strings.Contains(alerts.messages[0], "inventory") {
		t.Errorf("got the alerts %q, want one, of the agent inventory", alerts.messages)
	}
}

// paused are the pauses as they are stored, which name the probe.
func (w *world) paused() job.Holds {
	w.t.Helper()
	held, err := w.store.Holds(w.t.Context(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	return held.Holds
}
