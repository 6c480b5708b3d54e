//go:build aws && linux

package command_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
	"github.com/makegood-dev/makegood/onqueue"
)

const reportFile = `name: report
steps:
  - {name: check, agent: press, with: {report: "${ .input.report }"}}
`

// newBucket makes a bucket, and returns its name.
func newBucket(t *testing.T) string {
	t.Helper()
	at := standin.S3(t)
	name := "payloads-" + strings.ToLower(rand.Text())
	client := s3.NewFromConfig(at.Config(t))
	in := &s3.CreateBucketInput{Bucket: &name, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: standin.Region}}
	if _, err := client.CreateBucket(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return name
}

// schedules has the Scheduler's function, as a process, take what comes to the stack.
func (s *deployedStack) schedules(t *testing.T) {
	t.Helper()
	f := functionsOf(t, "scheduler")(s, "scheduler")
	client := sqs.NewFromConfig(standin.Config(standin.SQS(t).Endpoint))
	url, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(s.name + "-" + deployed.EventsQueue)})
	if err != nil {
		t.Fatal(err)
	}
	m := &lambdahost.Mapping{Client: client, QueueURL: *url.QueueUrl, Function: f}
	m.Start()
	t.Cleanup(m.Stop)
}

// places is where the stack keeps its jobs and queues, for its functions and agents.
func (s *deployedStack) places() []string {
	return []string{
		"MAKEGOOD_TABLE=" + s.name + "-jobs", "MAKEGOOD_INDEX=CompleteBy", "MAKEGOOD_SHARDS=16", "MAKEGOOD_QUEUE_PREFIX=" + s.name + "-", "MAKEGOOD_RETENTION_DAYS=30",
	}
}

// works runs an agent outside of Lambda, until the test's end.
func (s *deployedStack) works(t *testing.T, a agent.Handler) {
	t.Helper()
	for _, set := range append(slices.Clone(s.environment), s.places()...) {
		if name, value, _ := strings.Cut(set, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "MAKEGOOD_") {
			t.Setenv(name, value)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", a.Name()+"AgentRole")
	client := sqs.NewFromConfig(standin.Config(standin.SQS(t).Endpoint))
	if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.name + "-" + deployed.TasksQueue(a.Name()))}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- onqueue.Run(ctx, a, onqueue.Options{Logger: slog.New(slog.DiscardHandler)}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// checker reads a report to its end, and writes how it ended as a payload of its own.
func checker() agent.Handler {
	return agent.New("press", agent.Do("check", func(ctx context.Context, in struct {
		Report makegood.Payload `json:"report"`
	},
	) (makegood.Payload, error) {
		report, err := agent.OpenPayload(ctx, in.Report)
		if err != nil {
			return makegood.Payload{}, err
		}
		defer report.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, report); err != nil {
			return makegood.Payload{}, err
		}
		return agent.WritePayload(ctx, "text/plain", strings.NewReader(hex.EncodeToString(hash.Sum(nil))))
	}))
}

// 100 MB go into a stack by the command and past its doors, an agent reads them and writes a payload of its own, and both come back.
// Who may only read puts nothing in, and no log of a door lets anybody in.
func TestOneHundredMegabytesGoInAndOutOfAStack(t *testing.T) {
	s := newDeployedStack(t, newBucket(t))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the functions say:\n%s", s.said())
		}
	})
	dir := t.TempDir()
	file, back, workflow := filepath.Join(dir, "report.pdf"), filepath.Join(dir, "back"), filepath.Join(dir, "report.yaml")
	content := bytes.Repeat([]byte("0123456789abcdef"), makegood.MaxLargePayloadBytes/16)
	for name, text := range map[string][]byte{file: content, workflow: []byte(reportFile)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, 0, "publish", workflow)
	s.schedules(t)
	s.works(t, checker())

	ref, _ := s.run(t, 0, "payload", "put", "r-1", file)
	if again, _ := s.run(t, 0, "payload", "put", "r-1", file); again != ref || !strings.Contains(ref, `"bytes":104857600`) || !strings.Contains(ref, `"type":"application/pdf"`) {
		t.Errorf("got the reference %s, and again %s", ref, again)
	}
	if job := s.job(t, "submit", "report", "--id", "r-1", "--wait", "--input", `{"report":`+ref+`}`); job.ProcessState != makegood.JobProcessed {
		t.Fatalf("got %s (%s), want Processed: %+v", job.ProcessState, job.Reason, job.Steps)
	}
	s.run(t, 0, "payload", "get", "r-1", "input", "--to", back)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back, %v, want the same %d", len(got), err, len(content))
	}
	sum := sha256.Sum256(content)
	if got, _ := s.run(t, 0, "payload", "get", "r-1", "check"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the agent read %s, want %x", got, sum)
	}

	// A reference is one job's, and a file that is too large for a message is written by submit itself.
	if _, stderr := s.run(t, codeUsage, "submit", "report", "--id", "r-2", "--input", `{"report":`+ref+`}`); !strings.Contains(stderr, "is not there for this job") {
		t.Errorf("another job's: %s", stderr)
	}
	large := filepath.Join(dir, "large.json")
	if err := os.WriteFile(large, []byte(`["`+strings.Repeat("x", makegood.MaxPayloadBytes)+`"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if job := s.job(t, "submit", "report", "--id", "r-3", "--input", "@"+large); job.ID != "r-3" {
		t.Errorf("got %+v", job)
	}
	if got, _ := s.run(t, 0, "payload", "get", "r-3", "input"); len(got) != makegood.MaxPayloadBytes+4 {
		t.Errorf("got %d bytes", len(got))
	}

	s.environment = append(s.environment, "AWS_ACCESS_KEY_ID=reader", "AWS_SECRET_ACCESS_KEY=reads")
	s.run(t, 0, "payload", "get", "r-1", "check")
	if _, stderr := s.run(t, codeUsage, "payload", "put", "r-4", file); !strings.Contains(stderr, "the credentials may not use it") {
		t.Errorf("a reader puts: %s", stderr)
	}
	if said := s.said(); strings.Contains(said, "X-Amz-") || !strings.Contains(said, `"location":"http`) {
		t.Errorf("the doors log how one gets in, or not where: %.2000s", said)
	}
}

// A stack without a bucket says which parameter makes one.
func TestAStackWithoutABucketSaysWhatMakesOne(t *testing.T) {
	s := newDeployedStack(t)
	for _, args := range [][]string{{"payload", "put", "r-1", "payload_aws_test.go"}} {
		if _, stderr := s.run(t, codeUsage, args...); !strings.Contains(stderr, "the parameter "+httpapi.PayloadParameter) {
			t.Errorf("%v: got %s", args, stderr)
		}
	}
}
