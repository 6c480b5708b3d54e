//go:build aws && linux

package lambda

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/e2e/release"
	"github.com/makegood-dev/makegood/workflows/order"
)

// While a deployment rolls forwards and back, the functions of two releases work on one table and its queues, and
// are killed: nothing is parked, nothing is put into quarantine, nothing is lost, and what the newer one wrote
// into a job is in it still.
func TestADeploymentRollsForwardsAndBack(t *testing.T) {
	next := func(t *testing.T) release.Release { return need(release.Next(t.TempDir(), release.Later()))(t) }
	this := func(t *testing.T) release.Release { return need(release.This())(t) }
	t.Run("this and the next", func(t *testing.T) {
		r := roll(t, this(t), next(t))
		r.keptWhatItDoesNotKnow()
		r.leavesWhatItMustNotDecide()
	})
	if os.Getenv("UPGRADE") == "" {
		return // CI has no history to take the release before from; make upgrade-test has.
	}
	t.Run("the one before and this", func(t *testing.T) {
		roll(t, need(release.Before(t.TempDir()))(t), this(t))
	})
}

// need fails the test of whoever asks for what could not be had.
func need[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// rolling is a deployment of two releases.
type rolling struct {
	*world
	newer  *fleet
	random *rand.Rand
	of     *workflowfile.Compiled
	ids    []string
	// waiting are the jobs that were stored while only the newer release ran, and start under both. newerOnly are those
	// that only the newer release may decide about, where there is one that says so.
	waiting, newerOnly []string
	ended              map[string]job.Job
}

// quarter and kills are the jobs of a phase, and how many processes are killed in it.
func sizes(t *testing.T) (quarter, kills int) {
	if n, err := strconv.Atoi(os.Getenv("UPGRADE")); err == nil {
		return n / 4, n / 40
	}
	if !strings.HasPrefix(standin.DynamoDB(t).Product, "DynamoDB Local") {
		return 50, 5
	}
	return 100, 10
}

// roll sends jobs through the older release, both, the newer, both, and the older again, and then lets the newer
// end what the older must not decide about.
func roll(t *testing.T, older, newer release.Release) *rolling {
	seed := seed.Of(t) // which process is struck when depends on the machine too
	w := open(t, options{release: older})
	r := &rolling{world: w, newer: w.deploy(newer), random: rand.New(rand.NewPCG(seed, 0))}
	began := time.Now()
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(w.shop.URL()))
	yaml = bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte("timeout: 3s"))
	r.of = w.define(bytes.Replace(yaml, []byte("name: order"), []byte("name: upgrade"), 1))
	quarter, kills := sizes(t)
	r.submit("old", quarter, kills, w.fleet)
	r.newer.start()
	r.submit("both", quarter, kills, w.fleet, r.newer)
	w.stop()
	r.submit("new", quarter, kills, r.newer)
	later := time.Now().Add(startsIn + time.Duration(quarter)*startsEach)
	r.waiting = r.send("waiting", few, later, "")
	// The newer may be done with the first of them before the older runs. The others begin when the newer is stopped.
	r.newerOnly = append(r.send("only", few, time.Time{}, release.NewerOnly), r.send("only-later", few, later, release.NewerOnly)...)
	w.start()
	r.submit("back", quarter/2, kills/2, w.fleet, r.newer)
	r.newer.stop()
	r.leftToTheOlder()
	r.submit("again", quarter/2, kills/2, w.fleet)
	t.Logf("%d jobs submitted and rolled after %v", len(r.ids), time.Since(began).Round(time.Second))
	r.ended = w.ends(r.ids)
	t.Logf("done after %v; the older release:\n%s", time.Since(began).Round(time.Second), w.said())
	// The deployment rolls forwards again, for good: what the older release has left is done now.
	w.stop()
	r.newer.start()
	maps.Copy(r.ended, w.ends(r.newerOnly))
	if err := w.violations(r.ended); err != nil {
		t.Error(err)
	}
	r.nothingIsPutAway()
	return r
}

const (
	// few is how many jobs there are of a special kind.
	few = 10
	// startsIn, and startsEach for each job before, is when jobs start that the newer release stores and the older does:
	// later than the newer is stopped.
	startsIn   = 15 * time.Second
	startsEach = 150 * time.Millisecond
)

// leftToTheOlder looks which of the jobs that the newer release has stored have not begun now that it is stopped: what
// becomes of those is the older one's work alone.
func (r *rolling) leftToTheOlder() {
	r.t.Helper()
	r.ids = append(r.ids, r.waiting...)
	var left []string
	for _, id := range r.waiting {
		j, err := r.store.Load(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if j.ProcessState == makegood.JobPending && j.Rev == 1 {
			left = append(left, id)
		}
	}
	if r.waiting = left; len(left) == 0 {
		r.t.Error("all jobs have begun before the newer release was stopped: startsIn is too short for this machine")
	}
}

// submit submits jobs by message, while functions of the fleets are killed, and returns their ids.
func (r *rolling) submit(phase string, jobs, kills int, among ...*fleet) (ids []string) {
	r.t.Helper()
	for i := 0; i < jobs; i += few {
		ids = append(ids, r.send(fmt.Sprintf("%s-%04d", phase, i), min(few, jobs-i), time.Time{}, "")...)
		for range kills * few / jobs {
			strike(r.t, syscall.SIGKILL, r.random, among...)
		}
	}
	r.ids = append(r.ids, ids...)
	return ids
}

// send submits some jobs by message, and returns their ids when they are stored: by whom, those know who run now.
func (r *rolling) send(name string, jobs int, start time.Time, end string) (ids []string) {
	r.t.Helper()
	for i := range jobs {
		id := fmt.Sprintf("%s-%d%s", name, i, end)
		ids = append(ids, id)
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: r.of.Workflow.Name, ID: id, StartAt: start, Input: fmt.Appendf(nil, `{"id":%q,"customer":"c","total":3}`, id)})
		if err != nil {
			r.t.Fatal(err)
		}
		url := r.queue(deployed.SubmissionsQueue)
		if _, err := r.queues.SendMessage(r.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.born(ids)
	return ids
}

func (r *rolling) born(ids []string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); len(ids) > 0; {
		if _, err := r.store.Load(r.t.Context(), ids[0]); err == nil || errors.Is(err, store.ErrNewer) {
			ids = ids[1:]
			continue
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("job %s is not born after %v\n%s", ids[0], patience, r.said())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// nothingIsPutAway: no message is in quarantine, or in a dead-letter queue.
func (r *rolling) nothingIsPutAway() {
	r.t.Helper()
	for name, url := range r.urls {
		for _, url := range []string{url + "-dead", url} {
			if url == r.urls[name] && name != deployed.QuarantineQueue {
				continue
			}
			out, err := r.queues.ReceiveMessage(r.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}})
			if err != nil {
				r.t.Fatal(err)
			}
			for _, m := range out.Messages {
				r.t.Errorf("%s: %s", url, *m.Body)
			}
		}
	}
}

// keptWhatItDoesNotKnow: what only the newer release has written is in the jobs still, which the older has ended.
func (r *rolling) keptWhatItDoesNotKnow() {
	r.t.Helper()
	for _, id := range r.waiting {
		j := r.ended[id]
		if j.Kept != release.Field {
			r.t.Errorf("job %s: got %q of its own, want %q", id, j.Kept, release.Field)
		}
		for _, s := range j.Steps {
			if s.Kept != release.Field {
				r.t.Errorf("job %s, step %s: got %q of its own, want %q", id, s.Name, s.Kept, release.Field)
			}
		}
	}
	marked := 0
	for _, j := range r.ended {
		for _, s := range j.Steps {
			if strings.Contains(s.Forward.Kept, release.Field) && strings.Contains(s.Forward.Kept, release.Detail) {
				marked++
			}
		}
	}
	r.t.Logf("%d of %d steps have what the newer release wrote of an attempt", marked, 3*len(r.ended))
	if marked == 0 {
		r.t.Error("no step has what the newer release wrote of an attempt")
	}
}

// leaves is said by a Scheduler that has left something to a newer release: a line about messages, or its count of them and of deadlines.
var leaves = regexp.MustCompile(`left to a newer release|"Left":[1-9]`)

// leavesWhatItMustNotDecide: the older release was asked to move the jobs that only the newer may decide about.
func (r *rolling) leavesWhatItMustNotDecide() {
	r.t.Helper()
	if said := r.functions["scheduler"].Output(); !leaves.MatchString(said) {
		r.t.Error("the older release met none of the jobs that it had to leave")
	}
	for _, id := range r.newerOnly {
		if _, err := r.store.Load(r.t.Context(), id); !errors.Is(err, store.ErrNewer) {
			r.t.Errorf("job %s: got %v, want it to be the newer release's", id, err)
		}
	}
}
