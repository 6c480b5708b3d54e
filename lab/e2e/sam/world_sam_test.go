//go:build sam

package sam_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	root      = "../../.."
	stackName = "makegood-e2e"
	// endWithin is how long all orders may take that were submitted. A sweep comes once a minute, and one killed
	// process may hold a mapping of MiniStack's up for the minute of its function's timeout.
	endWithin = 6 * time.Minute
)

// world is a stack that was deployed, and the shop that its agents call.
type world struct {
	t        *testing.T
	shop     *services.Server
	script   services.Script
	deployed sam.Stack
	jobs     *client.Client
	orders   []string
	// binary is the makegood command; empty: it was not built yet.
	binary string
	// doors are where the stack's doors are on this machine.
	doors doors.Addresses
}

// open deploys the stack, with a shop of its own on loopback.
func open(t *testing.T) *world {
	t.Helper()
	product := os.Getenv(standin.DeployedVariable)
	if product == "" || os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Fatalf("%s and AWS_ENDPOINT_URL must say what to deploy to: run this with make e2e", standin.DeployedVariable)
	}
	t.Logf("deploys to %s", product)
	w := &world{t: t, script: services.Script{Profile: services.FaultsSome, Seed: 7}}
	planned := w.script
	planned.Plan = func(order string, action services.Action, try int) services.Fault {
		if order == killed && action == services.Reserve && try == 1 {
			return services.Hangs
		}
		return w.script.Fault(order, action, try)
	}
	var err error
	if w.shop, err = services.Start("127.0.0.1:0", services.Options{Script: planned}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.shop.Close() })
	w.deployed = sam.Stack{Root: root, Template: "template.yaml", Name: stackName, Parameters: w.parameters()}
	w.deploy(nil)
	t.Cleanup(func() {
		if err := w.deployed.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// MiniStack serves function URLs, and tells no function who knocks: the doors' own functions are behind a URL
	// that does.
	jobs, local, err := localdoors.OnStandIn(t.Context(), os.Getenv("AWS_ENDPOINT_URL"), stackName, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	w.jobs, w.doors = jobs, local.Addresses
	w.publish()
	return w
}

// parameters are those of dev, with what this machine needs.
func (w *world) parameters() []string {
	architecture := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	return []string{
		"Architecture=" + architecture, "DeletionProtection=no", "Shards=4", "LogRetentionDays=7", "Alarms=no", "Dashboard=no",
		"Shop=" + w.shop.URL(), "HttpAllow=127.0.0.1", "PayloadBucket=create", "Changes=bus",
	}
}

// deploy builds and deploys what is in the repository, with some files replaced.
func (w *world) deploy(replaced map[string][]byte) {
	w.t.Helper()
	folder, err := filepath.Abs(w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	if err := w.deployed.Build(w.t.Context(), folder, replaced); err != nil {
		w.t.Fatal(err)
	}
	between := time.Now()
	if err := w.deployed.Deploy(w.t.Context(), folder); err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("sam build in %.1f s, sam deploy in %.1f s", between.Sub(began).Seconds(), time.Since(between).Seconds())
}

// publish makes the sample workflow known, with this shop.
func (w *world) publish() {
	w.t.Helper()
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(w.shop.URL()))
	// Functions that start, on two cores, take their time.
	yaml = bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte("timeout: 5s"))
	if _, err := w.jobs.Publish(w.t.Context(), yaml); err != nil {
		w.t.Fatal(err)
	}
}

// submit submits orders.
func (w *world) submit(ids ...string) {
	w.t.Helper()
	for i, id := range ids {
		input := fmt.Sprintf(`{"id":%q,"customer":"c%d","total":%d.25}`, id, i, 10+i)
		if _, err := w.jobs.Submit(w.t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(input)}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.orders = append(w.orders, ids...)
}

// wait waits until each of some jobs is as wanted, and returns them by id.
func (w *world) wait(what string, ids []string, is func(makegood.Job) bool) map[string]makegood.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), endWithin)
	defer cancel()
	found := map[string]makegood.Job{}
	var last makegood.Job
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		for _, id := range ids {
			if _, done := found[id]; done {
				continue
			}
			job, err := w.jobs.Get(ctx, id)
			if err != nil && ctx.Err() == nil {
				w.t.Fatal(err)
			}
			if last = job; is(job) {
				found[id] = job
			}
		}
		if len(found) == len(ids) {
			tick.Stop()
			return found
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("%d of %d orders are %s after %s; one that is not: %+v", len(found), len(ids), what, endWithin, last)
		}
	}
}

// ends waits until all orders have ended, and compares their ends with the shop's script and its ledger.
func (w *world) ends() {
	w.t.Helper()
	counts, ends := map[makegood.ProcessState]int{}, map[string]makegood.ProcessState{}
	for id, job := range w.wait("at their end", w.orders, makegood.Job.AtEnd) {
		ends[id] = job.ProcessState
		counts[job.ProcessState]++
		if want := w.script.Ends(id); job.ProcessState != want {
			w.t.Errorf("order %s ended %s (%s), want %s", id, job.ProcessState, job.Reason, want)
		}
	}
	for _, violation := range services.Check(w.shop.Ledger(), ends) {
		w.t.Error(violation)
	}
	w.t.Logf("%d orders: %d Processed, %d Undone, %d Error; the shop's ledger was compared with each", len(ends),
		counts[makegood.JobProcessed], counts[makegood.JobUndone], counts[makegood.JobError])
}
