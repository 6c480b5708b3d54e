package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/e2e/signed"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const (
	// mustStay is how many executions an account must leave unreserved.
	mustStay = 100
	// usual is the quota of an account that is not new.
	usual = 1000
)

// asked is what a deployment wants of the account: how many executions it reserves, whether for all functions, how many
// of those the stack has reserved as it is, and how many the functions may use at once; how many resources its template
// has; and how many days its bucket keeps payloads, if it has one, and its table ended jobs.
type asked struct {
	resources                  int
	reserved, has, used        int
	reservesAll, hasPayloads   bool
	payloadDays, retentionDays int
}

// askedFor reads it from the template, with the parameters that are given or else those of samconfig.toml. What neither
// says stays as it is in the stack, which standing says: sam deploy leaves it so. Of a stack that is not there, it is
// the template's default.
func askedFor(template, samconfig, environment string, parameters []string, standing map[string]string) (asked, error) {
	environments, err := sam.Overrides(samconfig)
	if err != nil {
		return asked{}, err
	}
	said, known := environments[environment]
	if !known {
		return asked{}, fmt.Errorf("samconfig.toml has no environment %q", environment)
	}
	if len(parameters) > 0 {
		said = map[string]string{} // Those given take the place of all others.
	}
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		said[name] = value
	}
	values := map[string]any{}
	for _, some := range []map[string]string{standing, said} {
		for name, value := range some {
			values[name] = value
		}
	}
	wanted, err := stackfile.Parse(template, values)
	if err != nil {
		return asked{}, fmt.Errorf("template: %w", err)
	}
	a := asked{resources: wanted.Made(), hasPayloads: wanted.Conditions["HasPayloads"], reservesAll: wanted.Conditions["IsReserved"]}
	if a.payloadDays, err = days(wanted, "PayloadDays"); err != nil {
		return asked{}, err
	}
	if a.retentionDays, err = days(wanted, "RetentionDays"); err != nil {
		return asked{}, err
	}
	a.reserved, a.used = concurrency(wanted)
	if len(standing) > 0 {
		values = map[string]any{}
		for name, value := range standing {
			values[name] = value
		}
		is, err := stackfile.Parse(template, values)
		if err != nil {
			return asked{}, fmt.Errorf("template: %w", err)
		}
		a.has, _ = concurrency(is)
	}
	return a, nil
}

// days returns the value of a parameter that is a whole number.
func days(file *stackfile.File, name string) (int, error) {
	value := stackfile.Text(file.Parameters[name])
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: want a whole number of days", name, value)
	}
	return n, nil
}

// concurrency is how many executions the functions of a stack reserve, and how many their queues may have them use at
// once.
func concurrency(file *stackfile.File) (reserved, used int) {
	for _, name := range file.Of("AWS::Serverless::Function") {
		if !file.Exists(name) {
			continue
		}
		reserved += stackfile.Number(file.Property(name, "ReservedConcurrentExecutions"))
		events, _ := file.Property(name, "Events").(map[string]any)
		for _, event := range events {
			used += stackfile.Number(stackfile.At(event, "Properties", "ScalingConfig", "MaximumConcurrency"))
		}
	}
	return reserved, used
}

// limit is what Lambda says of an account. A zero Total: it may not be asked.
type limit struct {
	Total      int `json:"ConcurrentExecutions"`
	Unreserved int `json:"UnreservedConcurrentExecutions"`
}

// limits asks Lambda. Whoever may deploy need not be allowed to ask that.
func limits(ctx context.Context, c aws.Config) (limit, error) {
	body, err := signed.Ask(ctx, c, signed.Question{Service: "lambda", Method: http.MethodGet, Path: "/2016-08-19/account-settings/"})
	var status *signed.StatusError
	if errors.As(err, &status) && status.Code == http.StatusForbidden {
		return limit{}, nil
	}
	if err != nil {
		return limit{}, err
	}
	var settings struct {
		AccountLimit limit
	}
	if err := json.Unmarshal(body, &settings); err != nil {
		return limit{}, fmt.Errorf("account settings of Lambda: %w", err)
	}
	return settings.AccountLimit, nil
}

// stateOf returns the state of a stack, empty: it is not there, and its parameters as they are.
func stateOf(ctx context.Context, c *cloudformation.Client, name string) (status types.StackStatus, parameters map[string]string, err error) {
	found, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "does not exist") {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("state of stack %s: %w", name, err)
	}
	if len(found.Stacks) == 0 {
		return "", nil, nil
	}
	stack := found.Stacks[0]
	parameters = map[string]string{}
	for _, p := range stack.Parameters {
		parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	return stack.StackStatus, parameters, nil
}

// finding is something that was found. One that refuses must be mended before a deployment can succeed.
type finding struct {
	refuses bool
	text    string
}

// lacksOfState says what must be done to a stack before it can be deployed to.
func lacksOfState(name string, status types.StackStatus) []finding {
	refuse := func(what string) []finding {
		return []finding{{true, fmt.Sprintf("stack %s is %s: %s", name, status, what)}}
	}
	switch status {
	case types.StackStatusRollbackComplete, types.StackStatusCreateFailed, types.StackStatusDeleteFailed, types.StackStatusRollbackFailed:
		return refuse("its creation failed or its deletion did, and it can only be deleted; make undeploy STACK=" + name + ", and see what it leaves")
	case types.StackStatusUpdateRollbackFailed:
		return refuse("aws cloudformation continue-update-rollback --stack-name " + name)
	}
	if strings.HasSuffix(string(status), "_IN_PROGRESS") && status != types.StackStatusReviewInProgress {
		return refuse("wait until that is over")
	}
	return nil
}

// lacksOfTemplate says what CloudFormation would refuse when all is built and uploaded.
func lacksOfTemplate(a asked) []finding {
	if a.resources <= stackfile.MaxResources {
		return nil
	}
	return []finding{{true, fmt.Sprintf("the template makes %d resources, and CloudFormation takes %d: name fewer agents; what calls one service can be one agent with several actions", a.resources, stackfile.MaxResources)}}
}

// lacksOfPayloads says what the functions would refuse to start with.
func lacksOfPayloads(a asked) []finding {
	if why := deployed.TooFewPayloadDays(a.payloadDays, a.retentionDays); a.hasPayloads && why != "" {
		return []finding{{true, fmt.Sprintf("PayloadDays is %d, %s (RetentionDays). The functions would not start", a.payloadDays, why)}}
	}
	return nil
}

// lacksOfConcurrency compares what is asked with what the account has. What the stack has reserved as it is, is not
// among the unreserved any more, and comes back when it is not asked for.
func lacksOfConcurrency(a asked, has limit) []finding {
	if has.Total == 0 {
		return []finding{{false, "these credentials may not ask Lambda for the account's quota (lambda:GetAccountSettings), so it was not looked at"}}
	}
	increase := "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value " + strconv.Itoa(max(usual, a.reserved+mustStay))
	// The stack may be of a release that reserved less.
	if more := a.reserved - min(a.has, has.Total-has.Unreserved); more > 0 && has.Unreserved-more < mustStay {
		by := "CompletionLinks=yes"
		if a.reservesAll {
			by = "ReserveConcurrency=yes"
		}
		return []finding{{true, fmt.Sprintf(
			"%s reserves %d executions and %d must stay unreserved, but the account has %d of %d unreserved. Leave it out, or ask for more: %s",
			by, more, mustStay, has.Unreserved, has.Total, increase)}}
	}
	if a.used > has.Unreserved && !a.reservesAll {
		return []finding{{false, fmt.Sprintf(
			"under load the functions would use %d executions at once, and the account has %d: they will be throttled, which makes jobs slower and can put tasks into dead letters. It costs nothing to ask for more: %s",
			a.used, has.Unreserved, increase)}}
	}
	return nil
}
