package stack

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
)

// The environment variables that say where a stack's table and queues are, as its functions read them. Where VarTable
// and VarQueuePrefix are set, CloudFormation is not asked.
const (
	VarTable       = "MAKEGOOD_TABLE"
	VarIndex       = "MAKEGOOD_INDEX"
	VarQueuePrefix = "MAKEGOOD_QUEUE_PREFIX"
	VarAgents      = "MAKEGOOD_AGENTS"
	VarPayloads    = "MAKEGOOD_PAYLOADS"
)

// defaultIndex is the name of the index in template.yaml.
const defaultIndex = "CompleteBy"

// Parts names the claims and the tasks of a stack, for agents that run outside.
type Parts struct {
	AWS aws.Config
	// QueuePrefix stands before the name of each queue.
	Table, Index, QueuePrefix string
	// Payloads is where large payloads are, as BUCKET/STACK; empty or a dash: nowhere.
	Payloads string
	// Agents are those that have a tasks queue, as far as that is said.
	Agents []string
}

// Queues returns the stack's queues, with the caller's own rights.
func (p Parts) Queues() *sqsqueue.Queues {
	polling := p.AWS.Copy()
	polling.HTTPClient = awshttp.NewBuildableClient().WithTimeout(receiveTimeout)
	return sqsqueue.New(sqsqueue.Config{Client: sqs.NewFromConfig(polling), Prefix: p.QueuePrefix})
}

// receiveTimeout is how long one try of a request to SQS may take: a long poll, and a request.
const receiveTimeout = 20*time.Second + requestTimeout

// FindParts says where a stack keeps its claims and its tasks: as the environment says it, otherwise as the outputs of
// the CloudFormation stack do. Errors are of type *Error.
func FindParts(ctx context.Context, name string, getenv func(string) string) (Parts, error) {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)), config.WithLogger(logging.Nop{}))
	if err != nil {
		return Parts{}, &Error{Usage: true, err: fmt.Errorf("AWS configuration: %w", err), next: "see AWS_PROFILE and ~/.aws/config"}
	}
	if err := ready(ctx, c, name); err != nil {
		return Parts{}, err
	}
	p := Parts{AWS: c, Table: getenv(VarTable), Index: getenv(VarIndex), QueuePrefix: getenv(VarQueuePrefix), Payloads: getenv(VarPayloads), Agents: agentsOf(getenv(VarAgents))}
	if p.Table == "" || p.QueuePrefix == "" {
		if name == "" {
			return Parts{}, &Error{
				Usage: true, err: fmt.Errorf("no stack is named"),
				next: fmt.Sprintf("name it by --stack or %s, or set %s and %s", Variable, VarTable, VarQueuePrefix),
			}
		}
		if p, err = askParts(ctx, c, name); err != nil {
			return Parts{}, explained(err, name, c.Region)
		}
	}
	p.Index = cmp.Or(p.Index, defaultIndex)
	return p, nil
}

func askParts(ctx context.Context, c aws.Config, name string) (Parts, error) {
	found, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return Parts{}, err
	}
	p := Parts{AWS: c}
	agents := ""
	outputs := map[string]*string{
		"Agents": &agents, "TableName": &p.Table, "IndexName": &p.Index, "QueuePrefix": &p.QueuePrefix, "Payloads": &p.Payloads,
	}
	for _, s := range found.Stacks {
		for _, o := range s.Outputs {
			if at := outputs[aws.ToString(o.OutputKey)]; at != nil {
				*at = aws.ToString(o.OutputValue)
			}
		}
	}
	p.Agents = agentsOf(agents)
	if p.Table == "" || p.QueuePrefix == "" {
		return p, &Error{
			Usage: true, err: fmt.Errorf("stack %s in %s has no outputs TableName and QueuePrefix", name, c.Region),
			next: "was it deployed from a template.yaml of Makegood?",
		}
	}
	return p, nil
}

// agentsOf reads the names of agents with commas between.
func agentsOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
