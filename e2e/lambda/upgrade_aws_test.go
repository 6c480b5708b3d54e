//go:build aws && linux

package lambda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/e2e/aws/standin"
	"github.com/makegood-dev/makegood/e2e/release"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/workflows/order"
)

// While a deployment rolls forwards and back, the functions of two releases work on one table and its queues, and
// are killed: nothing is parked, nothing is put into quarantine, nothing is lost, and what the newer one wrote
// into a job is in it still.
func TestADeploymentRollsForwardsAndBack(t *testing.T) {
	next := func(t *testing.T) release.Release { return need(release.Next(t.TempDir(), release.Later))(t) }
	this := func(t *testing.T) release.Release { return need(release.This())(t) }
	t.Run("this and the next", func(t *testing.T) {
		roll(t, this(t), next(t))
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
	// bornNewer are the jobs that were born while only the newer release ran.
	bornNewer []string
	ended     map[string]makegood.Job
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
	seed := rand.Uint64()
	t.Logf("seed %d (which process is struck when depends on the machine too)", seed)
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
	r.bornNewer = r.submit("new", quarter, kills, r.newer)
	w.start()
	r.submit("back", quarter/2, kills/2, w.fleet, r.newer)
	r.newer.stop()
	r.submit("again", quarter/2, kills/2, w.fleet)
	t.Logf("%d jobs submitted and rolled after %v", len(r.ids), time.Since(began).Round(time.Second))
	r.ended = w.ends(r.ids)
	t.Logf("done after %v; the older release:\n%s", time.Since(began).Round(time.Second), w.said())
	if err := w.violations(r.ended); err != nil {
		t.Error(err)
	}
	r.nothingIsPutAway()
	return r
}

// submit submits jobs by message, while functions of the fleets are killed, and gives their ids.
func (r *rolling) submit(phase string, jobs, kills int, among ...*fleet) (ids []string) {
	r.t.Helper()
	for i := range jobs {
		id := fmt.Sprintf("%s-%04d", phase, i)
		ids = append(ids, id)
		r.send(id)
		if kills > 0 && i%max(1, jobs/kills) == 0 {
			strike(r.t, syscall.SIGKILL, r.random, among...)
		}
	}
	r.ids = append(r.ids, ids...)
	r.born(ids)
	return ids
}

func (r *rolling) send(id string) {
	r.t.Helper()
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: r.of.Workflow.Name, ID: id, Input: []byte(fmt.Sprintf(`{"id":%q,"customer":"c","total":3}`, id))})
	if err != nil {
		r.t.Fatal(err)
	}
	url := r.queue(deployed.SubmissionsQueue)
	if _, err := r.queues.SendMessage(r.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
		r.t.Fatal(err)
	}
}

// born waits until the jobs are stored: by whom they are, the phase says.
func (r *rolling) born(ids []string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); len(ids) > 0; {
		if _, err := r.store.Load(r.t.Context(), ids[0]); err == nil {
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
