//go:build aws && linux

package command_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
)

// messages makes the queues of a stack that hold what was put away, and lets the command know where they are.
func (s *deployedStack) boxes(t *testing.T) {
	t.Helper()
	client := sqs.NewFromConfig(standin.Config(standin.SQS(t).Endpoint))
	for _, name := range []string{"submissions", "events-dead", "submissions-dead", "sweeps-dead", "tasks-inventory-dead"} {
		if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.name + "-" + name)}); err != nil {
			t.Fatal(err)
		}
	}
	s.environment = append(s.environment, "MAKEGOOD_TABLE="+s.name+"-jobs", "MAKEGOOD_QUEUE_PREFIX="+s.name+"-", "MAKEGOOD_AGENTS=inventory,shipping")
}

func (s *deployedStack) put(t *testing.T, name, body string) {
	t.Helper()
	if err := errors.Join(s.queues.Send(t.Context(), name, queue.Message{Body: body})...); err != nil {
		t.Fatal(err)
	}
}

// listed are the messages that list --json shows.
func (s *deployedStack) listed(t *testing.T, box string, args ...string) (all []map[string]any) {
	t.Helper()
	out, _ := s.run(t, 0, append([]string{box, "list", "--json"}, args...)...)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var l map[string]any
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		all = append(all, l)
	}
	return all
}

// What docs/dead-letters.md shows, on a stack: quarantine and dead letters are looked at, replayed and dropped, and what was
// refused stays, with the reason.
func TestMessagesPutAwayOnAStackAreShownReplayedAndDropped(t *testing.T) {
	s := newDeployedStack(t)
	s.boxes(t)
	s.job(t, "submit", "order", "--id", "o-1", "--input", `{"id":"o-1","customer":"c-1","total":9.5}`)
	records, err := s.queues.Receive(t.Context(), deployed.TasksQueue("inventory"), 1)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "tasks-inventory-dead", records[0].Body)
	s.put(t, "tasks-inventory-dead", strings.Replace(records[0].Body, `"attempt":1`, `"attempt":9`, 1))
	good, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "o-2", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	for body, reason := range map[string]string{good: "there is no workflow order", "boo": "not JSON"} {
		record := events.SQSMessage{MessageId: "m", Body: body, EventSourceARN: "arn:aws:sqs:eu-central-1:000000000000:" + s.name + "-submissions"}
		if err := sqsbatch.Quarantine(t.Context(), s.queues, deployed.QuarantineQueue, record, reason); err != nil {
			t.Fatal(err)
		}
	}

	if all := s.listed(t, "quarantine"); len(all) != 2 {
		t.Errorf("quarantine: got %v, want two", all)
	}
	boo := s.listed(t, "quarantine", "--reason", "not")
	if len(boo) != 1 || boo[0]["source"] != "submissions" {
		t.Fatalf("got %v, want the one that is no JSON, from submissions", boo)
	}
	id := boo[0]["id"].(string)
	if out, _ := s.run(t, 0, "quarantine", "get", id); !strings.Contains(out, "boo") || !strings.Contains(out, "replay: refused") {
		t.Errorf("get: got %s", out)
	}
	s.run(t, codeUsage, "quarantine", "replay", "--all") // nobody can be asked
	if _, errs := s.run(t, codeOtherwise, "quarantine", "replay", "--all", "--submissions", "--dry-run"); !strings.Contains(errs, "it would be: 1 sent, 1 refused") {
		t.Errorf("dry run: got %s", errs)
	}
	if _, errs := s.run(t, codeOtherwise, "quarantine", "replay", "--all", "--submissions", "--yes"); !strings.Contains(errs, "1 sent, 1 refused") {
		t.Errorf("replay: got %s", errs)
	}
	again, err := s.queues.Receive(t.Context(), deployed.SubmissionsQueue, 10)
	if err != nil || len(again) != 1 || again[0].Body != good {
		t.Errorf("submissions: got %v, %v, want the one that is understood", again, err)
	}
	keep := filepath.Join(t.TempDir(), "dropped.jsonl")
	s.run(t, 0, "quarantine", "drop", id, "--keep", keep)
	if kept, err := os.ReadFile(keep); err != nil || !strings.Contains(string(kept), `"body":"boo"`) {
		t.Errorf("kept: got %s, %v", kept, err)
	}
	if all := s.listed(t, "quarantine"); len(all) != 0 {
		t.Errorf("quarantine: got %v, want nothing left", all)
	}

	out, errs := s.run(t, 0, "dead-letters", "replay", "--queue", "tasks-inventory", "--yes")
	if !strings.Contains(out, "attempt 9 of step reserve is over") || !strings.Contains(errs, "1 asked, 1 over") {
		t.Errorf("dead letters: got %s%s", out, errs)
	}
	asked, err := s.queues.Receive(t.Context(), deployed.EventsQueue, 10)
	if err != nil || len(asked) != 1 || !strings.Contains(asked[0].Body, `"DeadlinePassed"`) {
		t.Errorf("events: got %v, %v, want that the Scheduler is told to look", asked, err)
	}
	if all := s.listed(t, "dead-letters"); len(all) != 0 {
		t.Errorf("dead letters: got %v, want nothing left", all)
	}
}
