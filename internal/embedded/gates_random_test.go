package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// courseYAML has a step of each kind that comes to a gate, and one that is another job.
const courseYAML = `
name: course
onFailure: %s
steps:
  - {name: charge, agent: bank, undo: {action: refund}}
  - {name: items, map: {over: "${ [range(4)] }", concurrency: 2}, agent: bank, undo: {action: unitem}}
  - {name: look, agent: bank, inline: true, undo: none}
  - {name: kid, agent: workflow, action: kid}
  - {name: last, agent: bank, undo: none}
`

const kidYAML = `
name: kid
steps:
  - {name: charge, agent: bank, undo: {action: refund}}
`

// course is a world in which an agent with a limit fails in all ways, while people ask for anything.
type course struct {
	*world
	config embedded.Config
	// rnd chooses the requests of people, and from the ends of attempts: these come in no order that a seed knows.
	rnd  *rand.Rand
	from uint32
	yaml string
	bank clerks

	mu   sync.Mutex
	calm bool
	// seen is how often each attempt began.
	seen map[string]int
}

const courseJobs = 6

// act is the work of the agent: it succeeds once it is calm.
func (c *course) act(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	c.mu.Lock()
	name := fmt.Sprint(task.Key, "#", task.Attempt)
	c.seen[name]++
	x := int((crc32.ChecksumIEEE([]byte(name)) + c.from) % 20)
	if c.calm {
		x = 19
	}
	c.mu.Unlock()
	time.Sleep(time.Duration(1+x) * 100 * time.Millisecond)
	switch x {
	case 0, 1:
		return nil, errors.New("down")
	case 2:
		return nil, agent.Final(errors.New("broken"))
	case 3:
		return nil, agent.SlowDown(3*time.Second, errors.New("slow"))
	case 4:
		return nil, agent.RetryAfter(3*time.Second, errors.New("slow"))
	case 5:
		return silent(ctx, task)
	}
	return nil, nil
}

// begin opens the engine, and makes the workflows known.
func (c *course) begin() *workflowfile.Compiled {
	c.world = open(c.t, c.config)
	c.define(kidYAML)
	return c.define(c.yaml)
}

// asks makes a request of a person: a verb, a settlement, a pause, another limit. Or the engine dies.
func (c *course) asks(n int, mayChange bool, limits []makegood.Limit) {
	verbs := []makegood.Verb{
		makegood.VerbCancel, makegood.VerbUndo, makegood.VerbRedo, makegood.VerbForward, makegood.VerbRedrive,
		makegood.VerbResubmit, makegood.VerbResubmit, makegood.VerbPause, makegood.VerbResume, makegood.VerbResume,
	}
	parts, id, request := c.engine.Parts(), fmt.Sprint("j", c.rnd.IntN(courseJobs)), fmt.Sprint("r", n)
	switch x := c.rnd.IntN(25); { // A request may be refused.
	case x < 14:
		_, _, _ = parts.Scheduler.Request(c.t.Context(), id, job.Requested{Verb: verbs[c.rnd.IntN(len(verbs))], Request: request})
	case x == 14:
		step := []string{"charge", "look", "last"}[c.rnd.IntN(3)]
		_, _, _ = parts.Scheduler.Settle(c.t.Context(), id, job.Settled{Place: job.Place{Step: step}, Done: n%2 == 0, Request: request})
	case x == 15:
		c.pause(makegood.HoldWorkflow, "course")
	case x == 16:
		c.pause(makegood.HoldAgent, "bank")
	case x < 19:
		c.release()
	case x == 19:
		c.die()
		c.bank.reborn()
		c.begin()
	case mayChange:
		_, _ = parts.Holds.Limit(c.t.Context(), "bank", limits[c.rnd.IntN(len(limits))], "", "anna")
	}
}

// release ends all pauses.
func (c *course) release() {
	_, _ = c.engine.Parts().Holds.Resume(c.t.Context(), makegood.HoldWorkflow, "course", "anna")
	_, _ = c.engine.Parts().Holds.Resume(c.t.Context(), makegood.HoldAgent, "bank", "anna")
}

// ends wants that no job is stuck, but for those that wait for a person, and that no permit or ticket is left.
func (c *course) ends(limit int) {
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	c.release()
	time.Sleep(10 * time.Minute)
	person := false
	for i := range courseJobs {
		_, _, _ = c.engine.Parts().Scheduler.Request(c.t.Context(), fmt.Sprint("j", i), job.Requested{Verb: makegood.VerbResume, Request: "last"})
	}
	time.Sleep(90 * time.Minute)
	stuck := ""
	if err := c.engine.Each(c.t.Context(), func(j job.Job) error {
		person = person || j.ProcessState == makegood.JobError
		if !atEnd(j) {
			stuck += fmt.Sprintf(" %s is %s,", j.ID, j.ProcessState)
		}
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	if stuck != "" && !person {
		c.t.Errorf("jobs are stuck:%s", stuck)
	}
	c.world.limit("bank", limit)
	time.Sleep(3 * time.Minute)
	c.leftAt("bank")
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, n := range c.seen {
		if n > 1 {
			c.t.Errorf("attempt %s began %d times", key, n)
		}
	}
}

// Whatever is asked of jobs at a gate, whatever fails and when the engine dies: no more attempts are under way than the
// limit, no attempt begins twice, no job is stuck, and nothing is left at the gate; also where the limit, its rate and its
// key change meanwhile.
func TestRandomCoursesAtAGate(t *testing.T) {
	changes := []makegood.Limit{
		{},
		{Concurrency: 1},
		{Concurrency: 2},
		{Rate: "1/s", Burst: 1},
		{Rate: "60/m", Burst: 5, Concurrency: 1},
		{Concurrency: 1, Key: byAccount},
		{Concurrency: 1, Key: "${ .input }"},
		{Rate: "50/s", Key: byAccount},
		{Rate: "10/m", Burst: 1},
	}
	limits := []makegood.Limit{{Concurrency: 1}, {Concurrency: 2, Rate: "2/s", Burst: 2}, {Concurrency: 1, Key: "${ .input.nothing }"}}
	from, courses := seed.Of(t), map[bool]int{true: 12, false: 120}[testing.Short()]
	for n := range courses {
		synctest.Test(t, func(t *testing.T) {
			c := &course{rnd: rand.New(rand.NewPCG(from, uint64(n))), from: uint32(from) + uint32(n), seen: map[string]int{}}
			r := &troupe{script: map[string]work{}}
			for _, action := range []string{"charge", "refund", "items", "unitem", "look", "last"} {
				r.script[action] = c.bank.doing(c.act)
			}
			c.config = embedded.Config{Dir: memoryDir(t), Agents: r.agents("bank"), Tick: 5 * time.Second}
			c.yaml = fmt.Sprintf(courseYAML, []string{"undo", "stop"}[n%2])
			c.world = &world{t: t}
			compiled := c.begin()
			limit, mayChange := limits[n%len(limits)], n%4 == 3
			c.limitTo("bank", limit)
			for i := range courseJobs {
				c.submit(compiled, fmt.Sprint("j", i), fmt.Sprintf(`{"account":%d}`, i%2))
			}
			for i := range 60 {
				time.Sleep(time.Duration(c.rnd.IntN(3000)) * time.Millisecond)
				c.asks(i, mayChange, changes)
			}
			c.ends(limit.Concurrency)
			c.bank.mu.Lock()
			defer c.bank.mu.Unlock()
			if !mayChange && c.bank.most > limit.Concurrency {
				t.Errorf("%d attempts were under way at once, want %d", c.bank.most, limit.Concurrency)
			}
		})
		if t.Failed() {
			t.Fatalf("course %d", n)
		}
	}
}
