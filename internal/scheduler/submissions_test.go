package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// submissions are Submit messages for jobs of a workflow.
func (w *world) submissions(workflow string, n int) []record {
	w.t.Helper()
	var batch []record
	for i := range n {
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: workflow, ID: fmt.Sprint("job-", i), Input: json.RawMessage(`{}`)})
		if err != nil {
			w.t.Fatal(err)
		}
		batch = append(batch, w.raw(body))
	}
	return batch
}

// The first tasks of all submissions of a batch go out together, and with those of its events.
func TestTheTasksOfSubmissionsByMessageAreSentTogether(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	w.submit(w.define("name: other\nsteps: [{name: first, agent: b}, {name: second, agent: a}]"), "moves")
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprint("job-", i))
	}
	w.forget()
	if failed := w.handle(w.submissions("two", 10)...); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-a", all})
	if got := w.s.Stats().Tasks; got != 11 {
		t.Errorf("got %d tasks, want 11", got)
	}
	// They are there already; what nobody has claimed is sent again, with the next task of another job.
	w.forget()
	w.handle(append(w.submissions("two", 9), w.done("moves", "first"))...)
	w.checkSends(send{"tasks-a", append(all[:9], "moves")})
}

// To SQS's fair queues a group is a tenant: with a group for each job nobody would be kept from crowding out others.
func TestATaskCarriesTheTenantOfItsJobAsItsGroup(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	groups := map[string][]string{}
	w.deny = func(name string, m queue.Message) error {
		groups[name+" "+jobOf(m)] = append(groups[name+" "+jobOf(m)], m.Group)
		return nil
	}
	for id, tenant := range map[string]string{"j-1": "acme", "j-2": "acme", "j-3": ""} {
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(`{}`), Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	w.handle(w.done("j-1", "first"))
	want := map[string][]string{"tasks-a j-1": {"acme"}, "tasks-a j-2": {"acme"}, "tasks-a j-3": {"two"}, "tasks-b j-1": {"acme"}}
	if !maps.EqualFunc(groups, want, slices.Equal) {
		t.Errorf("got the groups %v, want %v", groups, want)
	}
}

// gate is a store whose first births wait for one another, and that counts how many there are at once.
type gate struct {
	store.Jobs
	full chan struct{}
	over <-chan struct{}

	mu        sync.Mutex
	now, most int
}

// patience is how long births wait for one another before the test has failed.
const patience = 2 * time.Minute

func (g *gate) Create(ctx context.Context, j job.Job) error {
	g.mu.Lock()
	g.now++
	if g.now > g.most {
		g.most = g.now
		if g.most == limits.MaxBatch {
			close(g.full)
		}
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	select {
	case <-g.full:
	case <-g.over:
		return errors.New("nobody else comes")
	}
	return g.Jobs.Create(ctx, j)
}

// Ten submissions take the time of one, and a thousand do not open a thousand requests at once.
func TestSubmissionsByMessageAreStoredSideBySide(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	over, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := &gate{Jobs: w.file, full: make(chan struct{}), over: over.Done()}
	w.handleWith(w.with(func(c *scheduler.Config) { c.Jobs = g }), w.submissions("two", 35)...)
	if g.most != limits.MaxBatch {
		t.Errorf("got %d at once, want %d", g.most, limits.MaxBatch)
	}
	for i := range 35 {
		if id := fmt.Sprint("job-", i); w.open(id, "first") != 1 {
			t.Errorf("%s: first is not open", id)
		}
	}
}

// A submission by message says all that another one can.
func TestASubmissionByMessageIsStoredAsItSays(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define(twoAgents)
	said := wire.Submit{Workflow: "two", ID: "j", Input: json.RawMessage(`{"n":1}`), StartAt: w.now.Add(makegood.MaxStartDelay), ReplyTo: "shop"}
	body, err := wire.EncodeSubmit(said)
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.handle(w.raw(body)); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	j := w.job("j")
	got := wire.Submit{Workflow: j.Workflow, ID: j.ID, Input: j.Input.Inline, StartAt: j.StartAt, ReplyTo: j.ReplyTo}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", said) || j.Definition != c.Hash {
		t.Errorf("got %+v of the definition %s, want %+v of %s", got, j.Definition, said, c.Hash)
	}
	said.ID, said.StartAt = "late", said.StartAt.Add(time.Millisecond)
	if body, err = wire.EncodeSubmit(said); err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	if _, err := w.file.Load(t.Context(), "late"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that starts a millisecond too late: got %v, want it refused", err)
	}
}

// A message that has lost its input is not taken for one whose input is null.
func TestASubmissionByMessageSaysItsInput(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	for id, input := range map[string]string{"none": ``, "null": `,"input":null`} {
		w.handle(w.raw(fmt.Sprintf(`{"v":1,"type":"Submit","workflow":"two","id":%q%s}`, id, input)))
	}
	if _, err := w.file.Load(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without an input: got %v, want it refused", err)
	}
	if got := w.job("null").Input.Inline; string(got) != "null" {
		t.Errorf("got the input %q, want null", got)
	}
}

// Nobody waits for the answer to a submission by message, so its record comes back until its tasks are sent.
func TestASubmissionByMessageComesBackUntilItsTasksAreSent(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 3)
	unheard := w.raw(`{"v":1,"type":"Submit","workflow":"unheard-of","id":"x","input":{}}`)
	w.deny = func(_ string, m queue.Message) error {
		if jobOf(m) == "job-1" {
			return errBroken
		}
		return nil
	}
	if failed := w.handle(append(batch, unheard)...); !slices.Equal(failed, []string{batch[1].MessageId}) {
		t.Errorf("wants again: %v, want %s", failed, batch[1].MessageId)
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 1 {
		t.Errorf("got %d messages in quarantine, %v, want the one of an unknown workflow", depth.Waiting, err)
	}
	w.deny = nil
	w.forget()
	if failed := w.handle(batch[1]); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-a", []string{"job-1"}})
	if got := w.job("job-1"); got.Rev != 1 || got.Steps[0].Attempt != 1 {
		t.Errorf("got revision %d, attempt %d, want 1 and 1", got.Rev, got.Steps[0].Attempt)
	}
}

// A birth that panics is our bug. It takes neither its neighbours nor the process along.
func TestASubmissionThatPanicsFailsItsRecordAlone(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 2)
	s := w.with(func(c *scheduler.Config) {
		jobs := c.Jobs
		c.Jobs = hook{Jobs: jobs, created: func(job string) {
			if job == "job-1" {
				panic("odd")
			}
		}}
	})
	response, err := s.HandleSQS(t.Context(), events.SQSEvent{Records: batch})
	if err != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != batch[1].MessageId {
		t.Errorf("got %v, %v, want the record of job-1 alone", response.BatchItemFailures, err)
	}
}

// hook is a store that does something as soon as a job is stored.
type hook struct {
	store.Jobs
	created, saved func(job string)
}

func (h hook) Create(ctx context.Context, j job.Job) error {
	err := h.Jobs.Create(ctx, j)
	h.created(j.ID)
	return err
}

func (h hook) Save(ctx context.Context, change store.Change) error {
	err := h.Jobs.Save(ctx, change)
	h.saved(change.Job.ID)
	return err
}

// limited are queues that no send may reach under a context that has ended, or that never ends.
type limited struct {
	queue.Sender
	t *testing.T
}

func (l limited) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	if _, limit := ctx.Deadline(); !limit || ctx.Err() != nil {
		l.t.Errorf("a send to %s: got a limit of time: %t, %v, want a limit that is ahead", name, limit, ctx.Err())
	}
	return l.Sender.Send(ctx, name, messages...)
}

// A caller hangs up as soon as the change of their job is stored. What it made due goes out all the same: it
// would else wait until it is found overdue.
func TestACallerThatHangsUpAfterTheSaveDelaysNoTask(t *testing.T) {
	w := newWorld(t)
	c := w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}, {name: second, agent: b}]")
	var ctx context.Context
	var hangUp context.CancelFunc
	calls := func() {
		ctx, hangUp = context.WithCancel(t.Context())
		t.Cleanup(hangUp)
	}
	hung := func(string) { hangUp() }
	s := w.with(func(c *scheduler.Config) {
		c.Jobs, c.Queue = hook{Jobs: w.file, created: hung, saved: hung}, limited{w, t}
	})
	sub := scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)}
	calls()
	if _, created, err := s.Submit(ctx, sub); err != nil || !created || ctx.Err() == nil {
		t.Errorf("got created %t, %v, the caller is there: %t; want it created for one who has gone", created, err, ctx.Err() == nil)
	}
	w.checkSends(send{"tasks-a", []string{"j"}})

	w.handle(w.done("j", "first"))
	w.forget()
	calls()
	if _, _, err := s.Request(ctx, "j", job.Requested{Verb: makegood.VerbCancel, Request: "r"}); err != nil || ctx.Err() == nil {
		t.Errorf("got %v, the caller is there: %t; want the cancel granted to one who has gone", err, ctx.Err() == nil)
	}
	w.checkSends(send{"tasks-a", []string{"j"}})
}

// What spares a wait is no task, and is not counted as one.
func TestAReminderIsNotCountedAsATask(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	s := w.with(func(c *scheduler.Config) { c.Reminders = true })
	for id, startAt := range map[string]time.Time{"now": {}, "soon": w.now.Add(time.Minute)} {
		if _, _, err := s.Submit(t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(`{}`), StartAt: startAt}); err != nil {
			t.Fatal(err)
		}
	}
	w.checkSends(send{"tasks-a", []string{"now"}}, send{"events", []string{"soon"}})
	if tasks, reminders := s.Stats().Tasks, s.Stats().Reminders; tasks != 1 || reminders != 1 {
		t.Errorf("counted are %d tasks and %d reminders, want 1 of each", tasks, reminders)
	}
}

// An alert that did not arrive is made again with the next task that nobody claims, and not in an hour.
func TestAnAlertThatDidNotArriveIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	c := w.define("name: one\nsteps: [{name: first, agent: a, startBy: 1m}]")
	w.submit(c, "j")
	w.submit(c, "k")
	begin := w.now
	w.told.deaf = errBroken
	for len(w.told.silent) == 0 {
		w.handle(w.deadline("j"), w.deadline("k"))
	}
	if len(w.told.silent) != 1 {
		t.Errorf("got the alerts %s, want one: the pause after a failure is not over for the second job", strings.Join(w.told.silent, " "))
	}
	w.told.deaf = nil
	for len(w.told.silent) < 2 {
		w.handle(w.deadline("j"), w.deadline("k"))
	}
	if after := w.now.Sub(begin); after > 20*time.Minute {
		t.Errorf("the second alert came after %s, want it with the next task, within 20 minutes", after)
	}
	for range 3 {
		w.handle(w.deadline("j"), w.deadline("k"))
	}
	if after := w.now.Sub(begin); len(w.told.silent) > 2 && after < time.Hour {
		t.Errorf("got %d alerts within %s, want two: the second has arrived", len(w.told.silent), after)
	}
}

// Where submissions have a queue of their own, who may send replies may not submit, and who may submit may not reply.
func TestSubmissionsComeByTheirOwnQueueAlone(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Submissions = "submissions" })
	w.submit(w.define(twoAgents), "there")
	reply := w.done("there", "first")
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.handle(w.raw(body)); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if _, err := w.file.Load(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a submission among the replies: got %v, want no job", err)
	}
	response, err := w.s.HandleSubmissions(t.Context(), events.SQSEvent{Records: []record{w.raw(body), reply, w.record("there", job.Submitted{})}})
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want no failures", response.BatchItemFailures, err)
	}
	if w.open("j", "first") != 1 || w.open("there", "second") != 0 {
		t.Errorf("got first#%d of the job submitted, second#%d of the other, want first#1, and that the reply was not heard", w.open("j", "first"), w.open("there", "second"))
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 2 {
		t.Errorf("got %d messages in quarantine, %v, want the two that came the wrong way", depth.Waiting, err)
	}
}
