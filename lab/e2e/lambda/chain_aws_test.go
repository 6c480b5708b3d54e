//go:build aws && linux

package lambda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/release"
)

// ofBefore is a program of the release before: it loads, saves and parks a job, and prints what became of each.
const ofBefore = `package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

func main() {
	client := dynamodb.New(dynamodb.Options{Region: os.Args[4], BaseEndpoint: aws.String(os.Args[1]), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
	s, err := dynamostore.New(dynamostore.Config{Client: client, Table: os.Args[2], Index: "CompleteBy"})
	say("open", err)
	j, err := s.Load(context.Background(), os.Args[3])
	say("load", err)
	j.Reason = "saved by the release before"
	say("save", s.Save(context.Background(), store.Change{Job: j, Seen: j.CompleteBy}))
	say("park", s.Park(context.Background(), j.ID, j.CompleteBy, "parked by the release before", time.Now().Add(time.Hour)))
}

func say(what string, err error) {
	switch {
	case err == nil:
		fmt.Println(what, "done")
	case errors.Is(err, store.ErrNewer):
		fmt.Println(what, "newer")
	default:
		fmt.Println(what, err)
	}
}
`

// While a deployment rolls, the release before meets jobs with chains of details. It shows them, saves and parks none,
// and goes on with all that have no chain.
func TestALongJobIsLeftWhileADeploymentRolls(t *testing.T) {
	if os.Getenv("UPGRADE") == "" {
		return // CI has no history to take the release before from; make upgrade-test has.
	}
	folder := t.TempDir()
	before := need(release.Before(folder))(t)
	program := filepath.Join(folder, "cmd", "before")
	if err := errors.Join(os.MkdirAll(program, 0o755), os.WriteFile(filepath.Join(program, "main.go"), []byte(ofBefore), 0o600)); err != nil {
		t.Fatal(err)
	}
	binary := need(before.Build("cmd/before", filepath.Join(t.TempDir(), "before")))(t)

	endpoint := standin.DynamoDB(t).Endpoint
	db, name := dynamodb.NewFromConfig(standin.Config(endpoint)), fmt.Sprintf("chain-%08x", rand.Uint32())
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(name, "CompleteBy")); err != nil {
		t.Fatal(err)
	}
	s := need(dynamostore.New(dynamostore.Config{Client: db, Table: name, Index: "CompleteBy"}))(t)
	for id, c := range map[string]struct {
		steps, needs int
		says         []string
	}{
		"short": {10, 0, []string{"open done", "load done", "save done", "park done"}},
		"long":  {40, job.LevelChained, []string{"open done", "load newer", "save newer", "park newer"}},
	} {
		want := ended(t, s, id, c.steps)
		if want.Needs != c.needs {
			t.Errorf("job %s needs %d, want %d", id, want.Needs, c.needs)
		}
		out, err := exec.CommandContext(t.Context(), binary, endpoint, name, id, standin.Region).CombinedOutput()
		if got := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || !reflect.DeepEqual(got, c.says) {
			t.Errorf("job %s: the release before says %q, %v, want %q", id, got, err, c.says)
		}
		got, err := s.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if same := reflect.DeepEqual(got, want); same != (c.needs > 0) || !reflect.DeepEqual(got.Steps, want.Steps) {
			t.Errorf("job %s is left unchanged: %t, by the release before; it has %d steps and the revision %d", id, same, len(got.Steps), got.Rev)
		}
	}
}

// ended is a job whose steps have ended one after the other, each with so much to say that it is a detail of its own.
func ended(t *testing.T, s store.Store, id string, steps int) job.Job {
	t.Helper()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	j := job.Job{
		ID: id, Workflow: "order", Definition: "0a0b", InputHash: "0c0d", Birth: "0e0f", Round: 1, ProcessState: makegood.JobProcessing,
		Desired: makegood.JobProcessed, CreatedAt: at, CompleteBy: at.Add(time.Hour),
	}
	for i := range steps {
		j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprintf("step_%03d", i)})
	}
	if err := s.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		j = need(s.Load(t.Context(), id))(t)
		j.Steps[i].Attempt = 1
		j.Steps[i].Forward = job.Activity{
			State: job.Failed, Attempt: 1, Tries: 1, At: at.Add(time.Duration(i) * time.Second), Error: &job.StepError{Message: strings.Repeat("x", 900)},
		}
		if err := s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}); err != nil {
			t.Fatal(err)
		}
	}
	return need(s.Load(t.Context(), id))(t)
}
