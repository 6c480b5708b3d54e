// Package stack lets the makegood command ask a deployed stack as it asks a process: it finds the doors, returns a
// client of them, and says what to do where they cannot be found. It serves no port, and has no state and no rule about
// jobs.
package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// Variable is the environment variable that names a stack where no flag does.
const Variable = "MAKEGOOD_STACK"

// The environment variables that say where a stack's doors are. Where one is set, CloudFormation is not asked.
const (
	VarSubmitURL  = "MAKEGOOD_SUBMIT_URL"
	VarReadURL    = "MAKEGOOD_READ_URL"
	VarOperateURL = "MAKEGOOD_OPERATE_URL"
	// VarCompleteURL is that of the door of completion tokens, which not every stack has.
	VarCompleteURL = "MAKEGOOD_COMPLETE_URL"
)

const (
	// requestTimeout is how long one try of one request to CloudFormation may take.
	requestTimeout = 5 * time.Second
	// tries is how often such a request is made in all, and patience how long one to a door is tried again: a
	// person waits, and a door's function may have to start.
	tries    = 3
	patience = 10 * time.Second
)

// Outputs returns the key of the output of template.yaml that says the same as a variable of this package.
func Outputs() map[string]string {
	return map[string]string{VarSubmitURL: protocol.SubmitOutput, VarReadURL: protocol.ReadOutput, VarOperateURL: protocol.OperateOutput, VarCompleteURL: protocol.CompleteOutput}
}

// Open returns a client of a stack. Where the environment says where its doors are, that stands; otherwise the
// outputs of the CloudFormation stack do. Errors are of type *Error; those of the client are package client's.
func Open(ctx context.Context, name string, getenv func(string) string) (*client.Client, error) {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)), config.WithRetryMaxAttempts(tries),
		// It would draw over what the verb prints; what matters is an error.
		config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, &Error{Usage: true, err: fmt.Errorf("AWS configuration: %w", err), next: "see AWS_PROFILE and ~/.aws/config"}
	}
	if err := ready(ctx, c, name); err != nil {
		return nil, err
	}
	at := doors.Addresses{Submit: getenv(VarSubmitURL), Read: getenv(VarReadURL), Operate: getenv(VarOperateURL), Complete: getenv(VarCompleteURL)}
	if at == (doors.Addresses{}) {
		if at, err = doors.Find(ctx, c, name); err != nil {
			return nil, explained(err, name, c.Region)
		}
	}
	asks, err := doors.New(doors.Config{AWS: c, Stack: name, Addresses: at}, client.WithPatience(patience))
	if err != nil {
		return nil, &Error{Usage: true, err: fmt.Errorf("stack %s: %w", name, err), next: "docs/doors.md says how a stack's doors are found"}
	}
	return asks, nil
}

// ready refuses to go on without a region or credentials: the SDK would say so only in the middle of a
// request, and in many words.
func ready(ctx context.Context, c aws.Config, name string) error {
	if c.Region == "" {
		return &Error{Usage: true, err: fmt.Errorf("stack %s: no AWS region is set", name), next: "set AWS_REGION, or AWS_PROFILE to a profile that has one"}
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return &Error{Usage: true, err: fmt.Errorf("stack %s: no AWS credentials: %w", name, err), next: "log in (aws sso login), or set AWS_PROFILE"}
	}
	return nil
}
