// Package stack lets the makegood command ask a deployed stack what it asks a process: it finds the
// stack's table and queues, runs the HTTP API's handler over them in this process, and gives a client of
// that. It serves no port, keeps nothing, and holds no rule about jobs.
//
// Whatever it does, it does with the credentials of whoever runs it; docs/operate.md lists what they
// must allow.
package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Variable is the environment variable that names a stack where no flag does.
const Variable = "MAKEGOOD_STACK"

const (
	// requestTimeout is how long one try of one request to AWS may take.
	requestTimeout = 5 * time.Second
	// tries is how often a request is made in all: a person waits.
	tries = 3
)

// Stack is a deployed stack.
type Stack struct {
	operator *deployed.Operator
	client   *client.Client
	explain  func(error) *Error
}

// Open finds a stack. Where the environment names a table (MAKEGOOD_TABLE), the functions' variables say
// where its parts are; otherwise the outputs of the CloudFormation stack do. files are the workflow files
// that a first submission makes known. warn is told, in a sentence, of what was stored and could not be sent
// at once. Errors are of type *Error.
func Open(ctx context.Context, name string, getenv func(string) string, files [][]byte, warn func(string)) (*Stack, error) {
	c, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)), config.WithRetryMaxAttempts(tries),
		// It would draw over what the verb prints; what matters is an error.
		config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, &Error{Usage: true, err: fmt.Errorf("AWS configuration: %w", err), next: "see AWS_PROFILE and ~/.aws/config"}
	}
	explain := func(err error) *Error { return explained(err, name, c.Region) }
	if err := ready(ctx, c, name); err != nil {
		return nil, err
	}
	if getenv(deployed.VarTable) == "" {
		outputs, err := outputsOf(ctx, c, name)
		if err != nil {
			return nil, explain(err)
		}
		getenv = outputs.getenv
	}
	unsent := slog.New(&warnings{to: warn, explain: explain})
	operator, err := deployed.NewOperator(c, getenv, files, instance(), unsent)
	if err != nil {
		return nil, &Error{Usage: true, err: fmt.Errorf("stack %s: %w", name, err), next: "docs/operate.md says what a stack's outputs, or the environment, must say"}
	}
	s := &Stack{operator: operator, explain: explain}
	api := httpapi.New(httpapi.Config{Backend: &remembering{Operator: operator}, Logger: slog.New(slog.DiscardHandler)})
	s.client, err = client.New("http://localhost", client.WithPatience(0), client.WithHTTPClient(inProcess(api, explain)))
	return s, err
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

// instance names this process in LockedBy: who asked, as far as this machine knows.
func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "somewhere"
	}
	return "makegood-" + host + "-" + strings.ToLower(rand.Text()[:8])
}

// Client gives a client that asks this stack. Its errors are those of package client; where AWS was not
// to be had, there is an *Error among them.
func (s *Stack) Client() *client.Client { return s.client }

// Publish makes a definition the current one of its workflow's name. Errors are of type *Error.
func (s *Stack) Publish(ctx context.Context, c *workflowfile.Compiled) error {
	if err := s.operator.Publish(ctx, c); err != nil {
		return s.explain(err)
	}
	return nil
}

// ListPaused gives a page of the paused jobs of a workflow, or of all when it is empty, and the cursor of
// the next. Errors are of type *Error.
func (s *Stack) ListPaused(ctx context.Context, workflow, cursor string, limit int) ([]store.Listed, string, error) {
	jobs, next, err := s.operator.ListPaused(ctx, workflow, cursor, limit)
	if err != nil {
		return nil, "", s.explain(err)
	}
	return jobs, next, nil
}
