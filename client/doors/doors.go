// Package doors gives a client of a deployed stack: its requests are signed, and go to the function URLs that are the
// stack's doors. IAM policies guard each door.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	at, err := doors.Find(ctx, cfg, "shop-prod")
//	c, err := doors.New(doors.Config{AWS: cfg, Stack: "shop-prod", Addresses: at})
//	job, err := c.Submit(ctx, makegood.Submission{Workflow: "order", ID: "o-1", Input: order})
//
// It knows no rule about jobs; package client documents what each call promises. docs/doors.md has the policies.
package doors

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// ErrNoDoors: the stack is there, and has not the doors that a stack of this version has.
var ErrNoDoors = errors.New("its outputs name no doors")

// Addresses are the URLs of a stack's doors. One that is empty is not knocked at.
type Addresses struct {
	Submit, Read, Operate string
	// Complete is the door for holders of a completion token. It is open to all, and requests to it are not signed.
	Complete string
}

// Find asks CloudFormation where the doors of a stack are. Errors: ErrNoDoors, and those of CloudFormation.
func Find(ctx context.Context, c aws.Config, stack string) (Addresses, error) {
	found, err := cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return Addresses{}, err
	}
	outputs := map[string]string{}
	for _, s := range found.Stacks {
		for _, o := range s.Outputs {
			outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
		}
	}
	at := Addresses{Submit: outputs[protocol.SubmitOutput], Read: outputs[protocol.ReadOutput], Operate: outputs[protocol.OperateOutput], Complete: outputs[protocol.CompleteOutput]}
	if at.Submit == "" || at.Read == "" || at.Operate == "" {
		return at, fmt.Errorf("%w: want %s, %s and %s", ErrNoDoors, protocol.SubmitOutput, protocol.ReadOutput, protocol.OperateOutput)
	}
	return at, nil
}

// Config is a stack: its doors, and the credentials for requests to them.
type Config struct {
	// AWS has the credentials that requests are signed with, and the region of the stack.
	AWS aws.Config
	// Stack is the stack's name, for messages.
	Stack string
	Addresses
}

// New makes a client of a stack, and makes no request yet. A request that a door's policy does not let in fails with
// a *api.InvalidError of status 403 that names the door and the missing permission; it had no effect. The options
// come after those that New sets; WithHTTPClient must not be among them.
func New(c Config, options ...client.Option) (*client.Client, error) {
	if c.AWS.Region == "" || c.AWS.Credentials == nil {
		return nil, errors.New("requests to a door are signed: the AWS configuration wants a region and credentials")
	}
	t := &transport{config: c, doors: map[string]*url.URL{}}
	for name, address := range map[string]string{submit: c.Submit, read: c.Read, operate: c.Operate, complete: c.Complete} {
		if address == "" {
			continue
		}
		parsed, err := url.Parse(strings.TrimSuffix(address, "/"))
		if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
			return nil, fmt.Errorf("%q is no URL of the door %s", address, name)
		}
		t.doors[name] = parsed
	}
	return client.New("https://"+url.PathEscape(c.Stack)+protocol.HostSuffix, append([]client.Option{client.WithHTTPClient(t.client())}, options...)...)
}
