//go:build aws && linux

package lambdahost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// TestMain makes this test's program the bootstrap as well: with a Runtime API it is a function.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		lambda.Start(function)
	}
	os.Exit(m.Run())
}

// seen is what a function prints of each record.
type seen struct {
	Body    string
	Batch   int
	Receive string
}

// function does what the first record says.
func function(_ context.Context, event events.SQSEvent) (json.RawMessage, error) {
	var bad []map[string]string
	for _, r := range event.Records {
		line, err := json.Marshal(seen{r.Body, len(event.Records), r.Attributes["ApproximateReceiveCount"]})
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s\n", line)
		if strings.HasPrefix(r.Body, "bad") {
			bad = append(bad, map[string]string{"itemIdentifier": r.MessageId})
		}
	}
	switch event.Records[0].Body {
	case "null list":
		return json.RawMessage(`{"batchItemFailures":null}`), nil
	case "null":
		return json.RawMessage(`null`), nil
	case "text":
		return json.RawMessage(`"text"`), nil
	case "empty id":
		return json.RawMessage(`{"batchItemFailures":[{"itemIdentifier":""}]}`), nil
	case "stranger":
		return json.RawMessage(`{"batchItemFailures":[{"itemIdentifier":"stranger"}]}`), nil
	case "error":
		return nil, errors.New("an error")
	case "exit":
		os.Exit(137)
	case "hang":
		select {}
	case "work":
		time.Sleep(100 * time.Millisecond)
	}
	return json.Marshal(map[string]any{"batchItemFailures": bad})
}

// world is a queue with its dead-letter queue, and a function on it.
type world struct {
	client    *sqs.Client
	url, dead string
	function  *Function
	mapping   *Mapping
}

// maxReceives is the maxReceiveCount of the queue: the redrive is the stand-in's.
const maxReceives = 2

func newWorld(t *testing.T, c Config) *world {
	t.Helper()
	service := standin.SQS(t)
	w := &world{client: sqs.NewFromConfig(standin.Config(service.Endpoint))}
	prefix := fmt.Sprintf("host-%08x-", rand.Uint32())
	w.dead = w.create(t, prefix+"dead", nil)
	attributes, err := w.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &w.dead, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.url = w.create(t, prefix+"q", map[string]string{
		"VisibilityTimeout": "6", // a process starts meanwhile
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, attributes.Attributes["QueueArn"], maxReceives),
	})
	host, err := New()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Name, c.Command = "f", []string{program}
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	w.function = host.Function(c)
	w.mapping = &Mapping{Client: w.client, QueueURL: w.url, Function: w.function}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) create(t *testing.T, name string, attributes map[string]string) string {
	t.Helper()
	made, err := w.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatalf("create queue %s: %v", name, err)
	}
	return *made.QueueUrl
}

func (w *world) send(t *testing.T, trace string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: &body}
		if trace != "" {
			in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
				string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: &trace},
			}
		}
		if _, err := w.client.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
}

// holds is how many messages a queue has, seen or hidden.
func (w *world) holds(t *testing.T, url string) string {
	t.Helper()
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
	out, err := w.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes[string(names[0])] + "+" + out.Attributes[string(names[1])]
}

// comesToHold waits until a queue holds what it should: the counts are approximate, and ElasticMQ's leave out a
// message of the same millisecond.
func (w *world) comesToHold(t *testing.T, url, want string) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		got := w.holds(t, url)
		if got == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the queue holds %s after %v, want %s", got, patience, want)
		}
	}
}

// drained waits until the queue is empty, and returns how often the function saw each body.
func (w *world) drained(t *testing.T) map[string]int {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	// A message on its way from one count into the other can be in neither of them for a moment.
	until := time.Now().Add(patience)
	for empty := 0; empty < 3; <-tick.C {
		holds := w.holds(t, w.url)
		if empty++; holds != "0+0" {
			empty = 0
		}
		if time.Now().After(until) {
			t.Fatalf("the queue holds %s after %v, want nothing", holds, patience)
		}
	}
	w.mapping.Stop()
	times := map[string]int{}
	for _, s := range w.seen(t) {
		times[s.Body]++
	}
	return times
}

func (w *world) seen(t *testing.T) (all []seen) {
	t.Helper()
	for line := range strings.Lines(w.function.Output()) {
		var s seen
		if json.Unmarshal([]byte(line), &s) == nil && s.Body != "" {
			all = append(all, s)
		}
	}
	return all
}

// What a function answers, and how it ends, decides which messages are deleted, which come again, and which end
// in the dead-letter queue.
func TestWhatBecomesOfAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		bodies   []string
		throttle int
		want     map[string]int // how often each body is seen
		dead     string
	}{
		"all is well":                        {bodies: []string{"well"}, want: map[string]int{"well": 1}, dead: "0+0"},
		"a null list is success":             {bodies: []string{"null list"}, want: map[string]int{"null list": 1}, dead: "0+0"},
		"null is success":                    {bodies: []string{"null"}, want: map[string]int{"null": 1}, dead: "0+0"},
		"a partial failure stays":            {bodies: []string{"well 1", "bad", "well 2"}, want: map[string]int{"well 1": 1, "bad": 2, "well 2": 1}, dead: "1+0"},
		"an answer of another kind fails":    {bodies: []string{"text"}, want: map[string]int{"text": 2}, dead: "1+0"},
		"an empty id fails the batch":        {bodies: []string{"empty id"}, want: map[string]int{"empty id": 2}, dead: "1+0"},
		"an unknown id fails the batch":      {bodies: []string{"stranger"}, want: map[string]int{"stranger": 2}, dead: "1+0"},
		"an error fails the batch":           {bodies: []string{"error"}, want: map[string]int{"error": 2}, dead: "1+0"},
		"a process that ends":                {bodies: []string{"exit"}, want: map[string]int{"exit": 2}, dead: "1+0"},
		"a process that hangs is killed":     {bodies: []string{"hang"}, want: map[string]int{"hang": 2}, dead: "1+0"},
		"a throttled message comes again":    {bodies: []string{"well"}, throttle: 1, want: map[string]int{"well": 1}, dead: "0+0"},
		"throttles alone make a dead letter": {bodies: []string{"well"}, throttle: 2, want: map[string]int{}, dead: "1+0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{}
			if c.bodies[0] == "hang" {
				config.Timeout = time.Second
			}
			w := newWorld(t, config)
			w.function.Throttle(c.throttle)
			w.send(t, "", c.bodies...)
			w.mapping.Start()
			if got := w.drained(t); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v\n%s", got, c.want, w.function.Output())
			}
			if got := w.holds(t, w.dead); got != c.dead {
				t.Errorf("the dead-letter queue holds %s, want %s", got, c.dead)
			}
			if all := w.seen(t); c.throttle == 1 && (len(all) == 0 || all[0].Receive != "2") {
				t.Errorf("got %+v, want it received twice before it was seen", all)
			}
			counts := &w.function.Counts
			ends := fmt.Sprint(counts.Deaths.Load(), counts.Timeouts.Load(), counts.Throttled.Load())
			want := map[string]string{"exit": "2 0 0", "hang": "0 2 0", "well": fmt.Sprint(0, 0, c.throttle)}[c.bodies[0]]
			if want != "" && ends != want {
				t.Errorf("got deaths, timeouts, throttles %s, want %s", ends, want)
			}
		})
	}
}

// No batch is larger than BatchSize, and a window makes of many small ones one.
func TestBatchesAreFilledWithinTheWindow(t *testing.T) {
	for _, c := range []struct {
		size   int
		window time.Duration
		want   []int
	}{{10, 0, nil}, {30, 10 * time.Second, []int{30}}} {
		w := newWorld(t, Config{})
		w.mapping.BatchSize, w.mapping.Window = c.size, c.window
		for i := range 30 {
			w.send(t, "", fmt.Sprint("m", i))
		}
		// One poller, since two would share the messages.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		for len(w.seen(t)) < 30 && ctx.Err() == nil {
			w.mapping.once(ctx)
		}
		cancel()
		sizes := map[int]bool{}
		for _, s := range w.seen(t) {
			sizes[s.Batch] = true
		}
		got := slices.Sorted(maps.Keys(sizes))
		if len(got) == 0 || got[len(got)-1] > c.size || c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("size %d, window %v: got batches of %v, want %v, none larger", c.size, c.window, got, c.want)
		}
	}
}

// No more invocations run at the same time than MaximumConcurrency.
func TestMaximumConcurrencyIsNeverExceeded(t *testing.T) {
	w := newWorld(t, Config{})
	w.mapping.BatchSize, w.mapping.MaximumConcurrency = 1, 3
	w.send(t, "", slices.Repeat([]string{"work"}, 30)...)
	w.mapping.Start()
	if got := w.drained(t)["work"]; got < 30 {
		t.Errorf("got %d messages, want 30", got)
	}
	if got := w.function.Counts.MostAtOnce.Load(); got < 2 || got > 3 {
		t.Errorf("got %d invocations at once, want 2 or 3", got)
	}
}

// A mapping that is stopped reads nothing, and one that is started again reads all.
func TestPollingCanBeStoppedAndStarted(t *testing.T) {
	w := newWorld(t, Config{})
	w.mapping.Start()
	w.mapping.Stop()
	w.send(t, "", "well")
	w.comesToHold(t, w.url, "1+0")
	if got := w.function.Counts.Invocations.Load(); got != 0 {
		t.Errorf("got %d invocations, want none", got)
	}
	w.mapping.Start()
	if got := w.drained(t)["well"]; got != 1 {
		t.Errorf("got it %d times, want once", got)
	}
}

// The header of a message is that of its invocation; a function that is in it often enough is not invoked.
func TestARecursiveLoopIsBrokenUnlessItIsAllowed(t *testing.T) {
	chain := ""
	for range MaxHops {
		chain, _ = extend(chain, "f")
	}
	for _, c := range []struct {
		terminate     bool
		seen, dropped int
		dead          string
	}{{true, 0, maxReceives, "1+0"}, {false, 1, 0, "0+0"}} {
		w := newWorld(t, Config{Terminate: c.terminate})
		w.send(t, chain, "well")
		w.mapping.Start()
		if got := w.drained(t)["well"]; got != c.seen {
			t.Errorf("terminate %v: got it %d times, want %d", c.terminate, got, c.seen)
		}
		if got := w.function.Counts.Recursive.Load(); int(got) != c.dropped {
			t.Errorf("terminate %v: got %d drops, want %d", c.terminate, got, c.dropped)
		}
		if got := w.holds(t, w.dead); got != c.dead {
			t.Errorf("terminate %v: the dead-letter queue holds %s, want %s", c.terminate, got, c.dead)
		}
	}
}

// An environment that was used is used again, until it is recycled.
func TestARecycledFunctionStartsCold(t *testing.T) {
	w := newWorld(t, Config{})
	event := []byte(`{"Records":[{"messageId":"1","body":"well"}]}`)
	for _, want := range []struct{ cold, warm int }{{1, 0}, {1, 1}, {2, 1}} {
		if want.cold == 2 {
			w.function.Recycle()
		}
		if answer, err := w.function.Invoke(t.Context(), event, ""); err != nil || answer.Failed {
			t.Fatalf("got %s, %v, want an answer", answer.Body, err)
		}
		if got := w.function.Took(); len(got.Cold) != want.cold || len(got.Warm) != want.warm {
			t.Errorf("got %d cold and %d warm, want %+v", len(got.Cold), len(got.Warm), want)
		}
	}
}
