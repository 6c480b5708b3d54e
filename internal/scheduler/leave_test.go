package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The tests of this file are about what a newer release wrote: none of it is decided about, and none of it is lost.

// newerJobs are jobs that a newer release wrote, from when they are said to be.
type newerJobs struct {
	store.Jobs
	all func() bool
}

func (n newerJobs) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := n.Jobs.Load(ctx, id)
	if err == nil && n.all() {
		err = store.ErrNewer
	}
	return j, err
}

// newer says of all jobs that a newer release wrote them.
func (w *world) newer() {
	w.use(func(c *scheduler.Config) { c.Jobs = newerJobs{c.Jobs, func() bool { return true }} })
}

// checkUntouched compares the job as it is with how it was, and looks into the quarantine and at who was told.
func (w *world) checkUntouched(was job.Job) {
	w.t.Helper()
	is, err := w.file.Load(w.t.Context(), was.ID)
	if err != nil || is.Rev != was.Rev || is.ProcessState != was.ProcessState || !is.CompleteBy.Equal(was.CompleteBy) {
		w.t.Errorf("got revision %d, %s, key %s, %v; want the job as it was: %d, %s, %s",
			is.Rev, is.ProcessState, is.CompleteBy, err, was.Rev, was.ProcessState, was.CompleteBy)
	}
	if depth, err := w.local.Depth(w.t.Context(), "quarantine"); err != nil || depth.Waiting != 0 {
		w.t.Errorf("got %d messages in quarantine, %v, want none", depth.Waiting, err)
	}
	if len(w.told.notices) != 0 || w.s.Stats().Parked != 0 || w.s.Stats().Poisoned != 0 {
		w.t.Errorf("told %v, parked %d, poisoned %d, want none", w.told.notices, w.s.Stats().Parked, w.s.Stats().Poisoned)
	}
}

// wasLeft compares the messages that were sent again with what came, each as it was but for its time in front.
func (w *world) wasLeft(name string, records ...record) {
	w.t.Helper()
	var want []string
	for _, r := range records {
		left, _ := wire.Leave(r.Body, w.now)
		want = append(want, left)
	}
	got := slices.Sorted(slices.Values(w.again[name]))
	if slices.Sort(want); !slices.Equal(got, want) {
		w.t.Errorf("sent again to %s: %q\nwant %q", name, got, want)
	}
	if got := w.s.Stats().Left; got < int64(len(records)) {
		w.t.Errorf("counted %d as left, want at least %d", got, len(records))
	}
}

// watchLeft keeps what is sent to a queue with a delay.
func (w *world) watchLeft() {
	w.again = map[string][]string{}
	w.deny = func(name string, m queue.Message) error {
		if m.Delay > 0 {
			w.again[name] = append(w.again[name], m.Body)
		}
		return nil
	}
}

func TestAMessageOfANewerReleaseIsSentAgainDelayed(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	was := w.job("j")
	w.watchLeft()
	version, kind := w.raw(`{"v":2,"type":"StepSucceeded","job":"j"}`), w.raw(`{"v":1,"type":"StepWaits","job":"j"}`)
	if failed := w.handle(version, kind, w.raw(`{"v":2,"type":"DeadlinePassed","job":"j"}`)); failed != nil {
		t.Errorf("wants again: %v, want none: they were sent again", failed)
	}
	w.wasLeft("events", version, kind)
	w.checkUntouched(was)
	if got := w.s.Stats().Left; got != 3 {
		t.Errorf("counted %d as left, want 3: the deadline, too", got)
	}
}

// What cannot be sent again was not left.
func TestAMessageThatCouldNotBeLeftComesAgain(t *testing.T) {
	w := newWorld(t)
	w.deny = func(string, queue.Message) error { return errBroken }
	newer := w.raw(`{"v":2,"type":"StepSucceeded","job":"j"}`)
	if failed := w.handle(newer); !slices.Equal(failed, []string{newer.MessageId}) {
		t.Errorf("wants again: %v, want the message", failed)
	}
	if got := w.s.Stats().Left; got != 0 {
		t.Errorf("counted %d as left, want none", got)
	}
}

func TestAMessageIsLeftForLongerEachTimeAndNotForEver(t *testing.T) {
	w := newWorld(t)
	var delays []time.Duration
	body := `{"v":2,"type":"StepSucceeded","job":"j"}`
	w.deny = func(name string, m queue.Message) error {
		if name == "events" {
			delays, body = append(delays, m.Delay), m.Body
		}
		return nil
	}
	begin := w.now
	for w.s.Stats().Poisoned == 0 && w.now.Before(begin.Add(2*limits.MaxLeft)) {
		n := len(delays)
		if failed := w.handle(w.raw(body)); failed != nil {
			t.Fatalf("wants again: %v, want none", failed)
		}
		if len(delays) > n {
			w.now = w.now.Add(delays[n])
		}
	}
	want := []time.Duration{time.Minute, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	if len(delays) < len(want) || !slices.Equal(delays[:len(want)], want) {
		t.Errorf("got the delays %v, want first %v", delays[:min(len(delays), len(want))], want)
	}
	if after := w.now.Sub(begin); after < limits.MaxLeft || after > limits.MaxLeft+time.Hour {
		t.Errorf("it was given up after %s, want %s", after, limits.MaxLeft)
	}
	records, err := w.local.Receive(t.Context(), "quarantine", 10)
	if err != nil || len(records) != 1 || !strings.Contains(records[0].Body, "no release that understands it came in 13 days: message of a newer release: version 2") {
		t.Errorf("got %v, %v in quarantine, want the message with its reason", records, err)
	}
	t.Logf("a message that nobody understands costs %d sends", len(delays))
}

// A token says how it was made. One made in a way that this release does not know is neither genuine nor forged.
func TestAReplyWithATokenOfALaterSchemeIsLeft(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: pair\nsteps: [{name: first, agent: a, needs: []}, {name: other, agent: b, needs: []}]"), "j")
	w.watchLeft()
	c := w.claim("j", "first")
	later := w.by("j", "first", c)
	later.Token = "2." + strings.TrimPrefix(later.Token, "1.")
	reply := w.record("j", job.StepSucceeded{Reply: later})
	w.forget()
	if failed := w.handle(reply, w.done("j", "other")); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.wasLeft("events", reply)
	if w.open("j", "first") != 1 || w.open("j", "other") != 0 {
		t.Errorf("got first#%d, other#%d out, want that the one was left and the other heard", w.open("j", "first"), w.open("j", "other"))
	}
	for _, token := range []string{"02.x", "2.", "-2.x", "2", "x.y", "0.x", "12345.x", "1.x", ""} {
		later.Token = token
		w.watchLeft()
		w.handle(w.record("j", job.StepSucceeded{Reply: later}))
		if len(w.again["events"]) != 0 {
			t.Errorf("the token %q was left, want it forged", token)
		}
	}
}

// Replies and the news that it was submitted are left; a deadline is dropped, since the key brings it again.
func TestAJobOfANewerReleaseIsNotDecidedAbout(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	w.submit(c, "j")
	reply, deadline := w.done("j", "first"), w.deadline("j")
	was := w.job("j")
	submitted := w.record("j", job.Submitted{})
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	submit := w.raw(body)
	w.newer()
	w.watchLeft()
	if failed := w.handle(deadline, w.record("j", job.DeadlinePassed{}), reply, submitted, submit); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.wasLeft("events", reply, submitted, submit)
	if got := w.s.Stats().Left; got != 5 {
		t.Errorf("counted %d as left, want 5: both deadlines, too", got)
	}
	w.checkUntouched(was)
}

// Where submissions have a queue of their own, they are left in that one.
func TestASubmissionIsLeftInItsOwnQueue(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Submissions = "submissions" })
	w.watchLeft()
	newer := w.raw(`{"v":2,"type":"Submit","id":"j"}`)
	response, err := w.s.HandleSubmissions(t.Context(), events.SQSEvent{Records: []record{newer}})
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want no failures", response.BatchItemFailures, err)
	}
	w.wasLeft("submissions", newer)
}

// Whoever waits for an answer is told to ask again, and nothing has happened.
func TestWhatIsAskedOfAJobOfANewerReleaseIsAnsweredAskAgain(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	w.submit(c, "j")
	was := w.job("j")
	w.newer()
	want := "this job was written by a newer release of Makegood, and this one must not decide about it; ask again when the deployment is done"
	for _, verb := range domain.Verbs() {
		if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: verb}); !errors.Is(err, store.ErrNewer) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", verb, err, want)
		}
	}
	if _, _, err := w.s.Wake(t.Context(), "j"); !errors.Is(err, store.ErrNewer) {
		t.Errorf("wake: got %v, want %v", err, store.ErrNewer)
	}
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`)}); !errors.Is(err, store.ErrNewer) || err.Error() != want {
		t.Errorf("submit: got %v, want %s", err, want)
	}
	w.checkUntouched(was)
}

// A stored definition was written by code: a field that is not known is no typo, but of a newer release.
func TestADefinitionOfANewerReleaseIsNotDecidedBy(t *testing.T) {
	for name, definition := range map[string]string{
		"a field": `{"name":"later","steps":[{"name":"first","agent":"a","mood":"good"}]}`,
		"a level": `{"name":"later","needs":4,"steps":{"first":"a"}}`,
	} {
		w := newWorld(t)
		w.submit(w.define(twoAgents), "j")
		if err := w.file.PutDefinition(t.Context(), "later", "h", []byte(definition)); err != nil {
			t.Fatal(err)
		}
		w.watchLeft()
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: "later", ID: "k", Input: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		submit := w.raw(body)
		w.handle(submit)
		w.wasLeft("events", submit)
		if _, _, err := w.s.SubmitCurrent(t.Context(), "later", scheduler.Submission{ID: "k", Input: []byte(`{}`)}); !errors.Is(err, store.ErrNewer) {
			t.Errorf("%s: a submission got %v, want %v", name, err, store.ErrNewer)
		}
		reply := w.done("j", "first")
		moved := w.job("j")
		moved.Definition = "h"
		if err := w.file.Save(t.Context(), store.Change{Job: moved, Seen: moved.CompleteBy}); err != nil {
			t.Fatal(err)
		}
		was := w.job("j")
		w.watchLeft()
		w.handle(reply, w.deadline("j"))
		w.wasLeft("events", reply)
		w.checkUntouched(was)
		if held, err := w.s.Held(t.Context(), was); len(held) != 0 || err != nil {
			t.Errorf("%s: got %v, %v held, want that the job can be shown", name, held, err)
		}
	}
}

// The newer release takes the job between our save and what we would note of it: that is nobody's to park.
func TestAJobThatANewerReleaseTakesWhileItIsToldOfIsLeft(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
	reply := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"})
	taken := false
	w.use(func(c *scheduler.Config) { c.Jobs = newerJobs{c.Jobs, func() bool { return taken }} })
	w.told.before = func() { taken = true }
	w.watchLeft()
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.wasLeft("events", reply)
	if j := w.job("j"); j.ProcessState != makegood.JobError || j.Told() || w.s.Stats().Parked != 0 {
		t.Errorf("got %s, told %t, %d parked; want it saved, to be told of again, and not parked", j.ProcessState, j.Told(), w.s.Stats().Parked)
	}
}

// A submission by message is stored, and a newer release takes its job before it could be noted who was told: the
// submission is left, and finds its job there when it comes again.
func TestASubmissionWhoseJobANewerReleaseTakesIsLeft(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	taken := false
	w.use(func(c *scheduler.Config) { c.Jobs = newerJobs{c.Jobs, func() bool { return taken }} })
	w.heard.before = func() { taken = true }
	w.watchLeft()
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: []byte(`{}`), ReplyTo: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	submit := w.raw(body)
	if failed := w.handle(submit); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.wasLeft("events", submit)
	if w.open("j", "first") != 1 {
		t.Errorf("got first#%d out, want the job stored with its first attempt", w.open("j", "first"))
	}
}

// What is left for its token is dealt with. When the job turns out to be a newer release's after that, each of the other
// records is left, or dropped, for what it says itself.
func TestWhatIsLeftForItsTokenLeavesTheOthersWhatTheyAre(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: pair\nonFailure: stop\nsteps: [{name: first, agent: a, needs: []}, {name: other, agent: b, needs: []}]"), "j")
	later := w.by("j", "other", w.claim("j", "other"))
	later.Token = "2." + strings.TrimPrefix(later.Token, "1.")
	unread := w.record("j", job.StepSucceeded{Reply: later})
	reply := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"})
	taken := false
	w.use(func(c *scheduler.Config) { c.Jobs = newerJobs{c.Jobs, func() bool { return taken }} })
	w.told.before = func() { taken = true }
	w.watchLeft()
	if failed := w.handle(unread, w.record("j", job.DeadlinePassed{Key: w.now}), reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.wasLeft("events", unread, reply)
	if got := w.s.Stats().Left; got != 3 {
		t.Errorf("counted %d as left, want 3: the deadline, too", got)
	}
}

// The secret of a job is what the tokens of its tasks were made with, also of those that are out.
func TestTheSecretOfAJobIsNeverReplaced(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	longer := w.job("j")
	longer.Secret = []byte(strings.Repeat("s", 2*limits.SecretBytes))
	if err := w.file.Save(t.Context(), store.Change{Job: longer, Seen: longer.CompleteBy}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.done("j", "first"))
	if got := w.job("j"); string(got.Secret) != string(longer.Secret) || w.open("j", "second") != 1 {
		t.Errorf("got the secret %q, second#%d, want %q, 1", got.Secret, w.open("j", "second"), longer.Secret)
	}
}
