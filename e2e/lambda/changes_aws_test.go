//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bustypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/e2e/aws/standin"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/notify/busnotify"
)

// readChanges makes a bus, and a queue behind a rule that finds what is published of changes. It returns the name of the bus, and
// what is in the queue, once.
func readChanges(t *testing.T, endpoint string) (bus string, read func() []makegood.Changes) {
	t.Helper()
	client, mq := eventbridge.NewFromConfig(standin.Config(endpoint)), sqs.NewFromConfig(standin.Config(endpoint))
	bus = fmt.Sprintf("changes-%08x", rand.Uint32())
	q, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &bus})
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := mq.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: q.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &bus}); err != nil {
		t.Fatal(err)
	}
	pattern := fmt.Sprintf(`{"source":[%q],"detail-type":[%q]}`, busnotify.Source, busnotify.Changes)
	if _, err := client.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &bus, EventBusName: &bus, EventPattern: &pattern}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: &bus, EventBusName: &bus, Targets: []bustypes.Target{{Id: aws.String("q"), Arn: aws.String(attributes.Attributes["QueueArn"])}},
	}); err != nil {
		t.Fatal(err)
	}
	return bus, func() (runs []makegood.Changes) {
		got, err := mq.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 1, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			var event struct{ Detail makegood.Changes }
			if err := json.Unmarshal([]byte(*m.Body), &event); err != nil {
				t.Fatalf("%v in %s", err, *m.Body)
			}
			runs = append(runs, event.Detail)
			if _, err := mq.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		return runs
	}
}

// The functions of a stack with Changes=bus: behind a rule of the bus the whole stream of each job arrives, whatever the order in
// which it is read, with no number missing.
func TestTheBusBringsEveryChangeOfAJob(t *testing.T) {
	endpoint := os.Getenv(standin.EndpointVariable)
	if endpoint == "" {
		t.Logf("%s has no EventBridge: make test-aws runs this on MiniStack, too", standin.SQS(t).Product)
		return
	}
	bus, read := readChanges(t, endpoint)
	w := open(t, options{environment: []string{deployed.VarChangesBus + "=" + bus}})
	compiled := w.order("")
	ids := []string{"c-1", "c-2", "c-3"}
	for _, id := range ids {
		if err := w.submit(compiled, id); err != nil {
			t.Fatal(err)
		}
	}
	jobs := w.ends(ids)
	heard := map[string]map[int]makegood.Change{}
	w.waitFor("every change of every job", func() bool {
		for _, run := range read() {
			if heard[run.Job] == nil {
				heard[run.Job] = map[int]makegood.Change{}
			}
			for _, c := range run.Changes {
				if was, again := heard[run.Job][c.Number]; again && was != c {
					t.Errorf("change %d of job %s was %+v, and is %+v", c.Number, run.Job, was, c)
				}
				heard[run.Job][c.Number] = c
			}
		}
		for _, id := range ids {
			j, err := w.store.Load(t.Context(), id)
			if err != nil || len(heard[id]) < j.Changes.Seq || j.Changes.Seq == 0 || len(j.Changes.Pending) > 0 {
				return false
			}
		}
		return true
	})
	for _, id := range ids {
		n := len(heard[id])
		state := ""
		for number := 1; number <= n; number++ {
			c, there := heard[id][number]
			if !there || c.Lost > 0 {
				t.Errorf("change %d of %d of job %s: %+v", number, n, id, c)
			}
			if c.Step == "" {
				state = c.To
			}
		}
		if j := jobs[id]; state != string(j.ProcessState) {
			t.Errorf("job %s is %s, and its changes say %q", id, j.ProcessState, state)
		}
	}
}
