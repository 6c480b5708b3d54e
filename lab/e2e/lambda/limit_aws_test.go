//go:build aws && linux

package lambda

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// wave is how many jobs are submitted at once.
const wave = 25

// everyOther leaves out every other tick: a sweep makes more requests than all the jobs of these tests.
func everyOther(n int) int { return n % 2 }

// known is until when a process may act on the pauses and limits of before: it reads them again when they are HoldsFresh
// old, and is killed at its timeout.
const known = limits.HoldsFresh + timeout

// A limit over all processes of a stack, raised and lowered while they work, with agents and Schedulers killed: the
// service that the agent calls never sees more at once, every job is done, and no permit is left.
func TestALimitHoldsOverProcessesThatAreKilled(t *testing.T) {
	t.Parallel()
	l := startLimited(t, makegood.Limit{Concurrency: 3})
	l.reach("three", 3, 3, 3)
	l.set(makegood.Limit{Concurrency: 6})
	l.reach("six", 4, 2, 3)               // As many as there are processes of the agent.
	l.set(makegood.Limit{Concurrency: 2}) // It looks at each permit, too: those that the killed Schedulers have left.
	lowered := time.Now()
	l.w.waitFor("the old limit to be forgotten", func() bool { return time.Since(lowered) > known })
	l.reach("two", 2, 0, 2)
	if under := l.end(); under[2] < wave {
		t.Errorf("%d calls began under the limit of 2 alone, want %d", under[2], wave)
	}
}

// A limit of one for each account: while agents and Schedulers are killed, the service never sees two calls of an account
// at once, but those of several accounts, every job is done, and no permit is left at any gate.
func TestALimitForEachAccountHoldsOverProcessesThatAreKilled(t *testing.T) {
	t.Parallel()
	l := startLimited(t, makegood.Limit{Concurrency: 1, Key: "${ .input.account }"})
	l.reach("three", 3, 3, 3)
	l.reach("four", 4, 2, 3)
	if n := len(l.gates); n != len(accounts) {
		t.Errorf("attempts had permits of %d gates, want one for each of %d accounts: %v", n, len(accounts), l.gates)
	}
	l.end()
}

// limited is the limit of the agent inventory, and the jobs that come to it.
type limited struct {
	w      *world
	s      *service
	client *client.Client
	submit func(word string, jobs int) (ids []string)
	stop   func()
	began  time.Time
	ids    []string
	// account is that of each job. By a limit without a key all have the same.
	account map[string]string

	mu      sync.Mutex
	periods []period
	// given is when each attempt got its permit, by the name of the attempt, and submitted when each job was about to be
	// submitted.
	given, submitted map[string]time.Time
	// gates are those at which permits were seen.
	gates map[string]bool
}

// startLimited starts a stack whose agent has a limit.
func startLimited(t *testing.T, limit makegood.Limit) *limited {
	s := startService(t, 300*time.Millisecond)
	w := open(t, options{environment: []string{"MAKEGOOD_SHOP=" + s.url}, ticks: everyOther})
	c := w.knock()
	l := &limited{
		w: w, s: s, client: c, began: time.Now(),
		submit:  w.publish(c, "limited", "name: reserve, agent: inventory, timeout: 4s, startBy: 6s, retry: {attempts: 20, backoff: 200ms, max: 1s}"),
		account: map[string]string{}, given: map[string]time.Time{}, submitted: map[string]time.Time{}, gates: map[string]bool{},
	}
	l.set(limit)
	l.stop = l.watch()
	t.Cleanup(l.stop)
	return l
}

// more submits jobs.
func (l *limited) more(word string, jobs int) {
	before := time.Now()
	for i, id := range l.submit(word, jobs) {
		l.ids = append(l.ids, id)
		l.submitted[id] = before
		if l.periods[0].limit.Key != "" {
			l.account[id] = account(i)
		}
	}
}

// reach submits jobs until the service has seen so many calls at once, and then kills processes in the middle of them.
func (l *limited) reach(word string, atOnce, schedulers, agents int) {
	l.s.gather.Store(int64(atOnce))
	l.more(word, wave)
	seen, waves := 0, 0
	l.w.waitFor(fmt.Sprint(atOnce, " calls at once"), func() bool {
		seen = max(seen, l.s.underWay())
		if seen < atOnce && len(l.s.those(func(c visit) bool { return c.status == 200 }))+10 > len(l.ids) {
			waves++
			l.more(fmt.Sprint(word, "-more", waves), 10)
		}
		return seen >= atOnce
	})
	l.s.gather.Store(0)
	for range agents {
		l.w.waitFor("a call", func() bool { return l.s.underWay() > 0 })
		l.w.kill("inventory")
	}
	for range schedulers {
		l.w.kill("scheduler")
	}
}

// end waits until all jobs have ended, and checks the calls that the service has seen. It returns how many calls began
// under each limit.
func (l *limited) end() (under map[int]int) {
	t := l.w.t
	ended := l.w.ends(l.ids)
	t.Logf("%d jobs, done after %v\n%s", len(l.ids), time.Since(l.began).Round(time.Second), l.w.said())
	for id, j := range ended {
		if j.ProcessState != makegood.JobProcessed {
			t.Errorf("%s is %s (%s), want Processed", id, j.ProcessState, j.Reason)
		}
	}
	l.w.waitFor("the last permit to be given back", func() bool {
		h := l.w.hold(l.client, "inventory")
		return h.UnderWay+h.Jobs == 0
	})
	l.stop()
	l.nothingLeft()
	for _, f := range []string{"scheduler", "inventory"} {
		if n := l.w.functions[f].Counts.Deaths.Load(); n == 0 {
			t.Errorf("no %s died at work", f)
		}
	}
	return l.judge()
}

// period is the time of a limit. A process that decides at a time within knows it, or the one before or after it.
type period struct {
	limit       makegood.Limit
	from, until time.Time
}

// set sets the limit.
func (l *limited) set(limit makegood.Limit) {
	l.w.t.Helper()
	l.mu.Lock()
	n := len(l.periods)
	l.periods = append(l.periods, period{limit: limit, from: time.Now(), until: time.Now().Add(time.Hour)})
	l.mu.Unlock()
	if _, err := l.client.LimitAgent(l.w.t.Context(), "inventory", limit, "a test"); err != nil {
		l.w.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		l.periods[n-1].until = time.Now() // It was the limit until the answer, or the new one was already.
	}
}

// most is the highest limit by which a process may have decided between two times.
func (l *limited) most(from, to time.Time) (most int) {
	for _, p := range l.periods {
		if !p.from.After(to) && p.until.Add(known).After(from) {
			most = max(most, p.limit.Concurrency)
		}
	}
	return most
}

// attempt names an attempt of a job.
func attempt(id string, n int) string { return fmt.Sprintf("%s#%d", id, n) }

// watch reads the permits of the agent again and again until stop is called, and compares them with the limit.
func (l *limited) watch() (stop func()) {
	ctx, cancel := context.WithCancel(l.w.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for gate := "inventory"; ctx.Err() == nil; <-tick.C {
			g, err := l.w.store.Gate(ctx, gate, 0)
			l.saw(gate, g.Permits)
			_, value, _ := strings.Cut(gate, "/")
			if err == nil {
				gate, err = l.w.store.NextGate(ctx, "inventory", value)
			}
			if err != nil && ctx.Err() == nil {
				l.w.t.Errorf("read the permits: %v", err)
			}
			if gate == "" {
				gate = "inventory"
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// saw notes when permits of a gate were given, and compares their number with the limit at the last of these times.
func (l *limited) saw(gate string, permits []job.Permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last time.Time
	for _, p := range permits {
		l.given[attempt(p.Ticket.Job, p.Ticket.Attempt)] = p.At
		last = later(last, p.At)
		l.gates[gate] = true
	}
	if most := l.most(last, last); len(permits) > most {
		l.w.t.Errorf("%d attempts have a permit of %s, the last since %v, when the limit was %d", len(permits), gate, last, most)
	}
}

// judge compares the calls for an account that the service has seen at once with the limit by which the last of them was
// let in. A call that was cut off counts until its job knew that the attempt was over: until then it has its permit.
func (l *limited) judge() (under map[int]int) {
	t := l.w.t
	calls := l.s.those(func(visit) bool { return true })
	cut := 0
	for i, c := range calls {
		if c.status != 0 {
			continue
		}
		cut++
		j, err := l.client.Get(t.Context(), c.job)
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(j.History, func(e makegood.Entry) bool { return e.Step == "reserve" && e.Attempt == c.attempt })
		if n < 0 {
			t.Fatalf("attempt %d of %s was cut off, and its job does not know: %+v", c.attempt, c.job, j.History)
		}
		calls[i].ended = j.History[n].At
	}
	under = map[int]int{}
	most := map[int]int{} // at once
	for _, c := range calls {
		atOnce := 0
		var from, to time.Time // The last of them was let in between these.
		for _, other := range calls {
			if other.began.After(c.began) || !other.ended.After(c.began) || l.account[other.job] != l.account[c.job] {
				continue
			}
			atOnce++
			given, seen := l.given[attempt(other.job, other.attempt)]
			earliest, latest := given, given
			if !seen { // Its permit came and went between two looks.
				earliest, latest = l.submitted[other.job], other.began
			}
			from, to = later(from, earliest), later(to, latest)
		}
		limit := l.most(from, to)
		under[limit]++
		most[limit] = max(most[limit], atOnce)
		if atOnce > limit {
			t.Errorf("%s began its attempt %d beside %d others, the last of them let in at %v, when the limit was %d", c.job, c.attempt, atOnce-1, to, limit)
		}
	}
	t.Logf("%d calls, %d of them cut off; calls that began under each limit: %v, the most at once: %v", len(calls), cut, under, most)
	if cut == 0 {
		t.Error("too little was seen: want a call that was cut off")
	}
	return under
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nothingLeft fails the test for each permit and ticket of the agent's gates that stands in the table.
func (l *limited) nothingLeft() {
	t := l.w.t
	db := dynamodb.NewFromConfig(standin.Config(standin.DynamoDB(t).Endpoint))
	out, err := db.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(l.w.prefix + "jobs"), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("PK = :gate"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":gate": &types.AttributeValueMemberS{Value: "gate#inventory"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Count > 0 {
		t.Errorf("%d items are left at the gates: %v", out.Count, out.Items)
	}
}
