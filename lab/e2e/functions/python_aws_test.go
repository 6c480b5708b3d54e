//go:build aws && linux

package functions_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// driver calls the functions of the agent in Python, and the heartbeat of docs/messages.md, as it is told line by line.
const driver = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("agent", "../../../examples/python-agent/agent.py")
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)
exec(sys.argv[1], agent.__dict__)
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(agent.__dict__[name](*arguments)), flush=True)
`

// python is the code in Python that is being told what to do.
type python struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func (w *world) python(t *testing.T) *python {
	t.Helper()
	text, err := os.ReadFile("../../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, heartbeat, found := strings.Cut(string(text), "```python\ndef heartbeat(")
	heartbeat, _, closed := strings.Cut(heartbeat, "\n```")
	if !found || !closed {
		t.Fatal("docs/messages.md shows no heartbeat")
	}
	process := exec.CommandContext(t.Context(), os.Getenv(standin.PythonVariable), "-c", driver, "def heartbeat("+heartbeat)
	process.Env, process.Stderr = append(slices.Clone(w.environment), "PYTHONDONTWRITEBYTECODE=1", iam.Key("paymentsAgentRole")), os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // It ends then.
		_ = process.Wait()
	})
	return &python{t, in, bufio.NewReader(out)}
}

// wants calls a function, and compares what it returns.
func (p *python) wants(want any, function string, arguments ...any) {
	p.t.Helper()
	line, err := json.Marshal(append([]any{function}, arguments...))
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	var got any
	if err := json.Unmarshal(answer, &got); err != nil || got != want {
		p.t.Errorf("%s: got %s, want %v", line, answer, want)
	}
}

// The code that docs/messages.md shows claims and sends heartbeats as the code in Go does, and leaves the same items.
func TestClaimsAndHeartbeatsInPythonAreThoseOfGo(t *testing.T) {
	w := newWorld(t)
	p := w.python(t)
	now := domain.Instant(time.Now())
	until := now.Add(limits.MaxClaimDelay)
	slot := store.Slot{Agent: "payments", Job: "j", Birth: "b", Step: "s"}
	task := func(job string, attempt int) json.RawMessage {
		body, err := wire.EncodeTask(makegood.Task{
			Job: job, Workflow: "w", Step: "s", Round: 1, Attempt: attempt, Agent: "payments", Action: "charge", Key: "k",
			Timeout: makegood.Minute, ReplyTo: "events", Birth: "b", ClaimUntil: until, Token: "none",
		})
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(body)
	}
	ms := now.UnixMilli()
	closing := func(attempt int, at, ends time.Time) {
		t.Helper()
		if _, err := w.store.Close(t.Context(), slot, store.Closing{Attempt: attempt, Until: until, Now: at, Ends: ends}); err != nil {
			t.Fatal(err)
		}
	}

	p.wants(false, "claim", task("j", 1), "me", until.UnixMilli()+1) // too late
	p.wants(true, "claim", task("j", 1), "me", ms)
	p.wants(true, "claim", task("j", 1), "me", ms) // boto3 tried again
	p.wants(false, "claim", task("j", 1), "other", ms)
	claim := job.Claim{Attempt: 1, LockedBy: "me", StartedAt: now, CompleteBy: now.Add(time.Minute)}
	twin := slot
	twin.Job = "twin"
	if err := w.store.Claim(t.Context(), twin, claim, until); err != nil {
		t.Fatal(err)
	}
	w.wantSame(t, slot, twin)

	later := now.Add(20 * 24 * time.Hour) // past until: the item is kept longer
	p.wants("mine", "heartbeat", task("j", 1), "me", ms, later.UnixMilli())
	p.wants("mine", "heartbeat", task("j", 1), "me", ms, ms) // never back
	claim.CompleteBy = later
	if _, err := w.store.Heartbeat(t.Context(), twin, claim, until); err != nil {
		t.Fatal(err)
	}
	w.wantSame(t, slot, twin)
	p.wants("over", "heartbeat", task("j", 1), "other", ms, later.UnixMilli())
	closing(1, now, now.Add(time.Hour))
	p.wants("withdrawn", "heartbeat", task("j", 1), "me", ms, later.Add(time.Hour).UnixMilli())
	closing(1, later, time.Time{})
	p.wants("over", "heartbeat", task("j", 1), "me", ms, later.UnixMilli())
	p.wants(false, "claim", task("j", 1), "me", ms)
	p.wants(true, "claim", task("j", 2), "me again", ms)
	p.wants(false, "claim", task("j", 1), "me", ms)
	closing(3, now, time.Time{})
	p.wants(false, "claim", task("j", 3), "me", ms)
}

// wantSame compares the items of two slots, but for their keys.
func (w *world) wantSame(t *testing.T, a, b store.Slot) {
	t.Helper()
	var items []map[string]types.AttributeValue
	for _, s := range []store.Slot{a, b} {
		out, err := w.db.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: &w.table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
				"PK": &types.AttributeValueMemberS{Value: "claim#" + s.Agent + "#" + s.Job},
				"SK": &types.AttributeValueMemberS{Value: s.Birth + "#" + s.Step},
			},
		})
		if err != nil || len(out.Item) == 0 {
			t.Fatalf("claim item of %+v: %v, %v", s, out, err)
		}
		delete(out.Item, "PK")
		items = append(items, out.Item)
	}
	if !reflect.DeepEqual(items[0], items[1]) {
		t.Errorf("Python left %v, Go %v", items[0], items[1])
	}
}
