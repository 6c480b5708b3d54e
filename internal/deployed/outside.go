package deployed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/secret"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// receiveTimeout is how long one try of a request to SQS may take for a receiver: a long poll, and a request.
const receiveTimeout = 20*time.Second + requestTimeout

// Queues are the queues of a stack, for receivers of tasks and replies.
type Queues interface {
	queue.Sender
	queue.Receiver
}

// Place is where an agent runs that no function runs.
type Place struct {
	Claims store.Claims
	// Held reports whether a task must not be begun, because its agent or its workflow is paused.
	Held    func(ctx context.Context, t makegood.Task) (bool, error)
	Queues  Queues
	Secrets agent.Secrets
	// Large has the large payloads; nil: there is nowhere for them.
	Large payload.Store
	// Instance names the process in LockedBy.
	Instance string
}

// OutsideConfig says where a stack keeps its claims and its tasks.
type OutsideConfig struct {
	AWS                       aws.Config
	Table, Index, QueuePrefix string
	// Payloads is where large payloads are, as VarPayloads says it.
	Payloads string
	Agent    string
}

// Outside makes the clients of an agent outside Lambda, and checks its access to its queue and its claims. It creates
// and changes no resource.
func Outside(ctx context.Context, getenv func(string) string, c OutsideConfig) (Place, error) {
	e := &environment{getenv: getenv}
	at, kept := e.secrets(VarSecrets), e.outsidePayloads(c.Payloads)
	if err := e.err(); err != nil {
		return Place{}, err
	}
	table, err := dynamostore.New(dynamostore.Config{Client: dynamodb.NewFromConfig(c.AWS), Table: c.Table, Index: c.Index})
	if err != nil {
		return Place{}, err
	}
	polling := c.AWS.Copy()
	polling.HTTPClient = awshttp.NewBuildableClient().WithTimeout(receiveTimeout)
	queues := sqsqueue.New(sqsqueue.Config{Client: sqs.NewFromConfig(polling), Prefix: c.QueuePrefix})
	if _, err := queues.Depth(ctx, TasksQueue(c.Agent)); err != nil {
		return Place{}, fmt.Errorf("agent %s: %w", c.Agent, err)
	}
	// A claim that no agent has: the read must be allowed, its result does not matter.
	now := time.Now()
	if _, err := table.Look(ctx, store.Slot{Agent: c.Agent, Job: "-", Birth: "-", Step: "-"}, 1, now, now); err != nil {
		return Place{}, fmt.Errorf("agent %s: its claims in table %s: %w", c.Agent, c.Table, err)
	}
	p := Place{Claims: table, Held: holds.NewReader(table, nil).Holds, Queues: queues, Instance: outsideInstance(c.Agent), Secrets: secret.Environment(os.LookupEnv)}
	if l := kept.open(c.AWS); l != nil {
		p.Large = l
	}
	if at != "" {
		p.Secrets = secret.Kept(parameterStore(ssm.NewFromConfig(c.AWS), at), time.Now)
	}
	return p, nil
}

// longestHost is how much of a host's name is in an instance.
const longestHost = 100

// outsideInstance names this process: the agent, the host, and a part that distinguishes its processes.
func outsideInstance(agentName string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	return fmt.Sprintf("%s@%.*s-%s", agentName, longestHost, host, hex.EncodeToString(id[:]))
}
