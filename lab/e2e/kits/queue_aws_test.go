//go:build aws && linux

package kits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/s3payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// stack is the table and the queues of a stack whose Scheduler is the test.
type stack struct {
	*engine
	t      *testing.T
	store  *dynamostore.Store
	queues *sqsqueue.Queues
	// large are its large payloads, as Go keeps them in the bucket.
	large  *s3payload.Store
	client *s3.Client
	bucket string
	env    []string
}

// newStack makes a stack. What is said on its events queue is known to the engine beside it.
func newStack(t *testing.T) *stack {
	t.Helper()
	tables, queues := standin.DynamoDB(t), standin.SQS(t)
	prefix := fmt.Sprintf("kits-%08x-", rand.Uint32())
	db, mq := dynamodb.NewFromConfig(standin.Config(tables.Endpoint)), sqs.NewFromConfig(standin.Config(queues.Endpoint))
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(prefix+"jobs", "CompleteBy")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"events", "quarantine", "tasks-probe"} {
		if _, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(prefix + name)}); err != nil {
			t.Fatalf("create queue %s: %v", name, err)
		}
	}
	objects, bucket := standin.S3(t), "kits-"+strings.ToLower(prefix[5:len(prefix)-1])
	client := s3.NewFromConfig(objects.Config(t))
	in := &s3.CreateBucketInput{Bucket: &bucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: standin.Region}}
	if _, err := client.CreateBucket(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	claims, err := dynamostore.New(dynamostore.Config{Client: db, Table: prefix + "jobs", Index: "CompleteBy"})
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{
		engine: newEngine(t), t: t, store: claims, queues: sqsqueue.New(sqsqueue.Config{Client: mq, Prefix: prefix}),
		large: s3payload.New(s3payload.Config{Client: client, Bucket: bucket, Prefix: "stack"}), client: client, bucket: bucket,
		env: []string{
			"MAKEGOOD_PAYLOADS=" + bucket + "/stack", "AWS_ENDPOINT_URL_S3=" + objects.Endpoint,
			"MAKEGOOD_TABLE=" + prefix + "jobs", "MAKEGOOD_QUEUE_PREFIX=" + prefix, "AWS_REGION=" + standin.Region, "AWS_DEFAULT_REGION=" + standin.Region,
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CA_BUNDLE=",
			"AWS_ENDPOINT_URL=" + queues.Endpoint, "AWS_ENDPOINT_URL_SQS=" + queues.Endpoint, "AWS_ENDPOINT_URL_DYNAMODB=" + tables.Endpoint,
		},
	}
	go s.listen(t.Context(), "events")
	go s.listen(t.Context(), "quarantine")
	return s
}

// listen hears what is said on a queue, and deletes nothing.
func (s *stack) listen(ctx context.Context, queue string) {
	for ctx.Err() == nil {
		records, err := s.queues.Receive(ctx, queue, 10)
		if err != nil {
			continue
		}
		for _, r := range records {
			var m message
			if json.Unmarshal([]byte(r.Body), &m) != nil {
				continue
			}
			job, _ := m["job"].(string)
			if queue == "quarantine" {
				job = "quarantine"
			}
			_ = s.queues.Delete(ctx, queue, r.ReceiptHandle) // it would be heard twice
			s.happen(func() { s.said[job] = append(s.said[job], m) })
		}
	}
}

// send sends a task so many times.
func (s *stack) send(g given, times int) {
	s.t.Helper()
	text, err := json.Marshal(g.task)
	if err != nil {
		s.t.Fatal(err)
	}
	for range times {
		for _, err := range s.queues.Send(s.t.Context(), "tasks-probe", queue.Message{Body: string(text)}) {
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func slot(id string) store.Slot {
	return store.Slot{Agent: "probe", Job: id, Birth: "6b1f0c9a41d2e37f", Step: "s"}
}

// held waits until an attempt is claimed, and returns the claim.
func (s *stack) held(id string) job.Claim {
	s.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		found, err := s.store.Look(s.t.Context(), slot(id), 2, claimUntil(), time.Now())
		if err == nil && found.Finding == job.FoundHeld {
			return found.Claim
		}
	}
	s.t.Fatalf("%s was not claimed within %s", id, patience)
	return job.Claim{}
}

func claimUntil() time.Time { return time.Now().Add(13 * 24 * time.Hour) }

// sent is a task as a queue has it: it can be claimed for a while from now.
func sent(id, action string, input any, rest ...message) given {
	return task(id, action, input, append(rest, message{"claimUntil": claimUntil().UTC().Format(time.RFC3339)})...)
}

// Each kit's agent at a queue: it claims, works, heartbeats and replies, and the claim items are what the store in Go reads.
func TestAllKitsBehaveTheSameAtAQueue(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *exec.Cmd{"go": golang, "python": pythonAtQueue, "typescript": typescriptAtQueue} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			begin(t, start(t), append(s.env, "CONCURRENCY=50", "PATIENCE_MS=20000")...)
			s.works()
			s.tells()
			s.isSilent()
			s.carries()
			bare := newStack(t)
			begin(t, start(t), append(bare.env, "CONCURRENCY=50", "PATIENCE_MS=20000", "MAKEGOOD_PAYLOADS=")...)
			bare.carriesNothing()
		})
	}
}

// works: a task that comes three times is done once; what is poison goes aside, what is newer is left.
func (s *stack) works() {
	s.t.Helper()
	s.send(given{task: message{"v": 1, "type": "Task", "job": "poison"}}, 1)
	s.send(sent("newer", "echo", 1, message{"v": 2}), 1)
	s.send(sent("a", "echo", message{"n": 1}), 3)
	s.send(sent("f", "fail", message{"message": "no", "final": true, "notApplied": true}), 1)
	reply := s.answer("a")
	wants(s.t, reply["output"], message{"n": 1.0})
	wants(s.t, reply["lockedBy"], s.held("a").LockedBy)
	wants(s.t, reply["token"], "1.A")
	s.send(sent("s", "slowDown", message{"message": "429", "ms": 2500, "times": 9}), 1)
	failed(s.t, s.answer("f"), false, "no", 0, "no")
	slowedDown(s.t, s.answer("s"))
	wants(s.t, s.answer("quarantine")["type"], "Quarantined")
	s.send(sent("later", "sleep", message{"ms": 1000}), 1)
	s.answer("later")
	wants(s.t, s.count("a"), 1)
	wants(s.t, s.count("newer"), 0)
	wants(s.t, s.count("quarantine"), 1)
}

// tells: a heartbeat moves the claim; one that is unwanted tells its agent so.
func (s *stack) tells() {
	s.t.Helper()
	s.send(sent("h", "heartbeat", message{"times": 6, "ms": 500}, message{"timeoutMs": 10_000}), 1)
	before := s.held("h").CompleteBy
	wants(s.t, s.answer("h")["output"], message{"failed": 0.0})
	if after := s.held("h").CompleteBy; after.Sub(before) < 2*time.Second {
		s.t.Errorf("six heartbeats moved CompleteBy by %s", after.Sub(before))
	}
	s.send(sent("w", "heartbeat", message{"times": 1000, "ms": 100}), 1)
	s.held("w")
	closing := store.Closing{Attempt: 2, Until: claimUntil(), Now: time.Now(), Ends: time.Now().Add(time.Minute)}
	if found, err := s.store.Close(s.t.Context(), slot("w"), closing); err != nil || found.Finding != job.FoundHeld {
		s.t.Fatalf("got %v, %v", found, err)
	}
	failed(s.t, s.answer("w"), true, "no", 0, "withdrawn")
}

// isSilent: nothing is said of an attempt that was closed before it was claimed, while it ran, or that ran too long.
func (s *stack) isSilent() {
	s.t.Helper()
	closing := store.Closing{Attempt: 2, Until: claimUntil(), Now: time.Now()}
	if _, err := s.store.Close(s.t.Context(), slot("closed"), closing); err != nil {
		s.t.Fatal(err)
	}
	s.send(sent("closed", "echo", 1), 1)
	s.send(sent("over", "heartbeat", message{"times": 1000, "ms": 100}), 1)
	s.send(sent("deaf", "deaf", message{"ms": 6000}, message{"timeoutMs": 4000}), 1)
	claim := s.held("over")
	closing.LockedBy = claim.LockedBy
	if _, err := s.store.Close(s.t.Context(), slot("over"), closing); err != nil {
		s.t.Fatal(err)
	}
	s.held("deaf")
	s.send(sent("witness", "sleep", message{"ms": 2*slept + 1000}), 1)
	s.answer("witness")
	for _, id := range []string{"closed", "over", "deaf"} {
		wants(s.t, s.count(id), 0)
	}
}

// carries: what a kit writes into the bucket Go reads, under the agent's name, in one piece or in parts; and the other way round.
func (s *stack) carries() {
	s.t.Helper()
	for i, n := range []int{0, 300_000, 5 << 20, 12_000_001} {
		id := fmt.Sprintf("pw%d", i)
		s.send(sent(id, "press", message{"from": "once", "bytes": n, "type": "text/plain"}), 1)
		output, _ := s.answer(id)["output"].(message)
		wants(s.t, output["report"], referenceTo(lines(n), "text/plain"))
		r, err := s.large.Open(s.t.Context(), id, makegood.Payload{SHA256: hashOf(lines(n)), Bytes: int64(n), By: "probe"}, 0, -1)
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, lines(n)) {
			s.t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
		_ = r.Close() // It was read.
	}
	s.send(sent("pl", "large", message{"bytes": 300_000}), 1)
	wants(s.t, s.answer("pl")["output"], referenceTo([]byte(`"`+strings.Repeat("x", 300_000)+`"`), "application/json"))
	if left := s.keys("stack/incoming/"); len(left) > 0 {
		s.t.Errorf("left behind: %v", left)
	}
	text := lines(7_000_000)
	if _, err := s.large.Write(s.t.Context(), payload.Place{Job: "pr1"}, bytes.NewReader(text)); err != nil {
		s.t.Fatal(err)
	}
	ref := message{"$payload": message{"sha256": hashOf(text), "bytes": len(text)}}
	s.send(sent("pr1", "inspect", message{"report": ref}), 1)
	wants(s.t, s.answer("pr1")["output"], message{"bytes": 7e6, "sha256": hashOf(text)})
	s.send(sent("pr1", "inspect", message{"report": ref, "offset": 5 << 20, "length": 16}, message{"step": "part"}), 1)
	var part any
	s.until("the reply of the part", func() bool {
		if len(s.said["pr1"]) < 2 {
			return false
		}
		part = s.said["pr1"][1]["output"]
		return true
	})
	wants(s.t, part, message{"bytes": 16.0, "sha256": hashOf(lines(16))})
	s.send(sent("pr2", "inspect", message{"report": ref}), 1) // of another job
	failed(s.t, s.answer("pr2"), false, "unknown", 0, "payload is not there")
}

// carriesNothing: where the agent is told of no payloads it says so, at once and for good; what only refers to one is passed on.
func (s *stack) carriesNothing() {
	s.t.Helper()
	ref := message{"$payload": message{"sha256": hashOf(nil), "bytes": 0.0, "type": "application/json"}}
	s.send(sent("n1", "press", message{"from": "memory", "bytes": 10}), 1)
	s.send(sent("n2", "inspect", message{"report": ref}), 1)
	s.send(sent("n3", "large", message{"bytes": 256<<10 - 1}), 1)
	s.send(sent("n7", "large", message{"bytes": 128 << 10, "of": "é"}), 1)
	s.send(sent("n8", "large", message{"bytes": 128<<10 - 1, "of": "é"}), 1)
	s.send(sent("n4", "echo", ref), 1)
	s.send(sent("n5", "passOn", ref), 1)
	s.send(sent("n6", "echo", message{"report": ref}), 1)
	for id, says := range map[string]string{"n1": "there is no payload store where this agent runs", "n2": "there is no payload store", "n3": "the output has 262145 bytes", "n7": "the output has 262146 bytes"} {
		failed(s.t, s.answer(id), false, "unknown", 0, says)
	}
	failed(s.t, s.answer("n4"), false, "no", 0, "there is no payload store where this agent runs")
	wants(s.t, s.answer("n8")["output"] == strings.Repeat("é", 128<<10-1), true)
	wants(s.t, s.answer("n5")["output"], ref)
	wants(s.t, s.answer("n6")["output"], message{"report": ref})
}

// keys are those in the bucket that begin with a prefix.
func (s *stack) keys(prefix string) (keys []string) {
	s.t.Helper()
	out, err := s.client.ListObjectsV2(s.t.Context(), &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func pythonAtQueue(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := python(t)
	cmd.Path = os.Getenv(standin.PythonVariable) // it has boto3
	if cmd.Path == "" {
		t.Fatalf("%s must name a Python that has boto3: run this with make test-aws", standin.PythonVariable)
	}
	return cmd
}

// typescriptAtQueue has the kit in a folder beside which AWS's SDK is installed.
func typescriptAtQueue(t *testing.T) *exec.Cmd {
	t.Helper()
	// A folder of its own: two sets of stand-ins are tested at once, and npm moves what the other's agent reads.
	project := t.TempDir()
	var kit struct{ DevDependencies map[string]string }
	text, err := os.ReadFile(root(t, "kits", "typescript", "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &kit)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(project, "package.json"), []byte(`{"type": "module"}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"install", "--no-audit", "--no-fund", "--no-package-lock", filepath.Join(typescriptKit(t), "makegood-agent.tgz")}
	for name, version := range kit.DevDependencies {
		if strings.HasPrefix(name, "@aws-sdk/") {
			arguments = append(arguments, name+"@"+version)
		}
	}
	install := exec.Command(need(t, "npm"), arguments...)
	install.Dir = project
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	probe, err := os.ReadFile("agents/probe.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(project, "probe.mjs"), probe, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(need(t, "node"), filepath.Join(project, "probe.mjs"))
}
