package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// outputs are a stack's outputs by their keys.
type outputs map[string]string

// Outputs gives the key of the output of template.yaml that says the same as a variable of the functions.
func Outputs() map[string]string {
	return map[string]string{
		deployed.VarTable: "TableName", deployed.VarIndex: "IndexName", deployed.VarShards: "Shards",
		deployed.VarQueues: "Queues", deployed.VarQueuePrefix: "QueuePrefix",
		deployed.VarReplies: "Replies", deployed.VarRetention: "RetentionDays", deployed.VarAgents: "Agents",
	}
}

// getenv gives a variable as the stack's functions have it.
func (o outputs) getenv(variable string) string { return o[Outputs()[variable]] }

// errNotOurs: the stack is there, and was not made from template.yaml.
var errNotOurs = errors.New("its outputs name no table of Makegood")

// outputsOf asks CloudFormation.
func outputsOf(ctx context.Context, c aws.Config, name string) (outputs, error) {
	found, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return nil, err
	}
	all := outputs{}
	for _, s := range found.Stacks {
		for _, o := range s.Outputs {
			// CloudFormation takes no empty value; a dash stands for it.
			if value := aws.ToString(o.OutputValue); value != "-" {
				all[aws.ToString(o.OutputKey)] = value
			}
		}
	}
	if all.getenv(deployed.VarTable) == "" {
		return nil, fmt.Errorf("%w: want %s", errNotOurs, Outputs()[deployed.VarTable])
	}
	return all, nil
}
