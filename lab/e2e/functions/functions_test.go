//go:build linux

package functions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

// patience is how long a test waits for a function to answer.
const patience = 2 * time.Minute

// functions is the folder of the functions' mains.
const functions = "../../../functions/"

// build builds a function for this machine, with the flags of make functions that matter here.
func build(t *testing.T, function string) string {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), filepath.Base(function))
	command := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, function)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", function, err, out)
	}
	return bootstrap
}

// lambda is a function with its processes.
type lambda struct {
	function *lambdahost.Function
	output   printed
}

// answer is what a function posted: to response or to error.
type answer struct{ kind, body string }

// printed returns what the processes have printed so far.
type printed func() string

func (p printed) String() string { return p() }

// start makes a function that may be invoked until the test ends.
func start(t *testing.T, bootstrap string, environment ...string) *lambda {
	t.Helper()
	host, err := lambdahost.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	environment = append(slices.Clone(environment), iam.Key(iam.Role(bootstrap, environment)))
	f := host.Function(lambdahost.Config{Name: "f", Command: []string{bootstrap}, Environment: environment, Timeout: patience})
	return &lambda{f, f.Output}
}

// invoke returns what the function answers to an event.
func (l *lambda) invoke(t *testing.T, event []byte) answer {
	t.Helper()
	a, err := l.call(event)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (l *lambda) call(event []byte) (answer, error) {
	a, err := l.function.Invoke(context.Background(), event, "")
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("%w:\n%s", err, l.output)
	case a.Failed:
		return answer{"error", string(a.Body)}, nil
	default:
		return answer{"response", string(a.Body)}, nil
	}
}

func saved(t *testing.T, name string) []byte {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestAFunctionWithoutConfigurationNamesAllThatIsMissingAndEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	for function, names := range map[string][]string{
		"scheduler":  {"AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME", "MAKEGOOD_TABLE", "MAKEGOOD_INDEX", "MAKEGOOD_QUEUES", "MAKEGOOD_QUEUE_PREFIX"},
		"agent":      {"AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME", "MAKEGOOD_TABLE", "MAKEGOOD_INDEX", "MAKEGOOD_QUEUES", "MAKEGOOD_QUEUE_PREFIX", "MAKEGOOD_AGENT"},
		"door":       {"AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME", "MAKEGOOD_TABLE", "MAKEGOOD_INDEX", "MAKEGOOD_QUEUES", "MAKEGOOD_QUEUE_PREFIX", "MAKEGOOD_DOOR"},
		"supervisor": {"AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME", "MAKEGOOD_TABLE", "MAKEGOOD_INDEX", "MAKEGOOD_QUEUES", "MAKEGOOD_QUEUE_PREFIX"},
	} {
		t.Run(function, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			command := exec.CommandContext(ctx, build(t, functions+function))
			command.Env = []string{}
			out, err := command.CombinedOutput()
			if exit := command.ProcessState.ExitCode(); exit != 1 || strings.Count(string(out), "\n") != 1 {
				t.Errorf("got exit status %d (%v) and %q, want 1 and one line", exit, err, out)
			}
			for _, name := range names {
				if !strings.Contains(string(out), name) {
					t.Errorf("got %q, want %s named", out, name)
				}
			}
		})
	}
}

// A batch of nothing but poison needs no store: each record goes into quarantine, and none is left to
// be delivered again. The list of those is empty, and not null.
func TestPoisonGoesIntoQuarantineAndTheAnswerHasAList(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	var mu sync.Mutex
	var quarantined []string
	sqs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			QueueName string
			Entries   []struct{ ID, MessageBody string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetQueueUrl") {
			fmt.Fprintf(w, `{"QueueUrl":"http://%s/1/%s"}`, r.Host, request.QueueName)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		taken := []map[string]string{}
		for _, e := range request.Entries {
			quarantined = append(quarantined, e.MessageBody)
			taken = append(taken, map[string]string{"Id": e.ID, "MessageId": e.ID})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Successful": taken})
	}))
	defer sqs.Close()
	for _, function := range []string{"scheduler", "agent"} {
		quarantined = nil
		l := start(t, build(t, functions+function), environment(sqs.URL, "MAKEGOOD_AGENT=inventory")...)
		for range 2 { // The second finds the function warm.
			if got, want := l.invoke(t, saved(t, "poison.json")), (answer{"response", `{"batchItemFailures":[]}`}); got != want {
				t.Errorf("%s: got %+v, want %+v\n%s", function, got, want, l.output)
			}
		}
		mu.Lock()
		if len(quarantined) != 4 || !strings.Contains(strings.Join(quarantined, ""), "poison message") {
			t.Errorf("%s: quarantine got %q, want 4 messages with their reasons", function, quarantined)
		}
		mu.Unlock()
		for line := range strings.Lines(l.output.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: logged %q, want JSON", function, line)
			}
		}
	}
}

// environment is that of a function; more may be added.
func environment(endpoint string, more ...string) []string {
	return append([]string{
		"AWS_REGION=eu-central-1", "AWS_LAMBDA_FUNCTION_NAME=f", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
		"MAKEGOOD_TABLE=jobs", "MAKEGOOD_INDEX=CompleteBy", "MAKEGOOD_QUEUE_PREFIX=stack-",
	}, more...)
}
