//go:build sam

package sam_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
)

const projectStack = "trips-e2e"

// A project as makegood new writes it is built and deployed, and a trip goes through its functions; one that cannot be
// booked whole is undone.
func TestAProjectIsDeployedAsItIsWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "trips")
	written := exec.CommandContext(t.Context(), "go", "run", "./cmd/makegood", "new", "trips", "--replace", ".", "--dir", folder)
	written.Dir = root
	if out, err := written.CombinedOutput(); err != nil {
		t.Fatalf("makegood new: %v\n%s", err, out)
	}
	stack := sam.Stack{Root: folder, Template: "template.yaml", Name: projectStack, Parameters: []string{
		"Architecture=" + map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH],
		"DeletionProtection=no", "Shards=4", "LogRetentionDays=7", "Alarms=no", "Dashboard=no",
	}}
	built := t.TempDir()
	if err := stack.Build(t.Context(), built, nil); err != nil {
		t.Fatal(err)
	}
	if err := stack.Deploy(t.Context(), built); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs, local, err := localdoors.OnStandIn(t.Context(), os.Getenv("AWS_ENDPOINT_URL"), projectStack, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), endWithin)
	defer cancel()
	for hotel, ends := range map[string]makegood.ProcessState{"Ritz": makegood.JobProcessed, "full": makegood.JobUndone} {
		began := time.Now()
		input := json.RawMessage(`{"for":"Ada","flight":"LH 400","hotel":"` + hotel + `","car":"Mini"}`)
		if _, err := jobs.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "trip-" + hotel, Input: input}); err != nil {
			t.Fatal(err)
		}
		job, err := jobs.Wait(ctx, "trip-"+hotel)
		if err != nil || job.ProcessState != ends {
			t.Errorf("hotel %s: got %s (%s), %v, want %s", hotel, job.ProcessState, job.Reason, err, ends)
		}
		t.Logf("hotel %s: %s after %.1f s: %s", hotel, job.ProcessState, time.Since(began).Seconds(), job.Reason)
	}
}
