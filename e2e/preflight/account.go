package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/e2e/sam"
	"github.com/makegood-dev/makegood/e2e/signed"
	"github.com/makegood-dev/makegood/internal/deployed"
)

const (
	// mustStay is how many executions an account must leave unreserved.
	mustStay = 100
	// usual is the quota of an account that is not new.
	usual = 1000
)

// asked is what a deployment wants of the account: how many executions it reserves, and how many it may use at once; and how many
// days its bucket keeps payloads, if it has one, and its table ended jobs.
type asked struct {
	reserved, used             int
	hasPayloads                bool
	payloadDays, retentionDays int
}

// The numbers, as template.yaml writes them.
var (
	rowLine      = regexp.MustCompile(`(?m)^    \w+: \{MemorySize: .* Concurrency: (\d+)\}$`)
	reservedLine = regexp.MustCompile(`ReservedConcurrentExecutions: !If \[IsReserved, (\d+),`)
	sourceLine   = regexp.MustCompile(`MaximumConcurrency: (\d+)\}`)
)

// askedFor reads it from the template, with the parameters that are given or else those of samconfig.toml.
func askedFor(template, samconfig, environment string, parameters []string) (asked, error) {
	environments, err := sam.Overrides(samconfig)
	if err != nil {
		return asked{}, err
	}
	values, known := environments[environment]
	if !known {
		return asked{}, fmt.Errorf("samconfig.toml has no environment %q", environment)
	}
	if len(parameters) > 0 {
		values = map[string]string{} // Those given take the place of all others.
	}
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		values[name] = value
	}
	a := asked{hasPayloads: values["PayloadBucket"] != ""}
	if a.payloadDays, err = number(template, values, "PayloadDays"); err != nil {
		return asked{}, err
	}
	if a.retentionDays, err = number(template, values, "RetentionDays"); err != nil {
		return asked{}, err
	}
	template = settled(template, values)
	agents := sum(rowLine, template) + rowless(template)
	a.used = agents + sum(sourceLine, template)
	if values["ReserveConcurrency"] == "yes" {
		a.reserved = agents + sum(reservedLine, template)
	}
	return a, nil
}

// What an agent has that is listed and has no row.
var (
	listLine  = regexp.MustCompile(`(?m)^  Agents: &agents \[(.+)\]$`)
	otherwise = regexp.MustCompile(`MaximumConcurrency: !FindInMap \[Agents, !Ref Agent, Concurrency, \{DefaultValue: (\d+)\}\]`)
)

// rowless is what the agents without a row of their own use.
func rowless(template string) int {
	listed := listLine.FindStringSubmatch(template)
	if listed == nil {
		return 0
	}
	without := 0
	for name := range strings.SplitSeq(listed[1], ", ") {
		if !strings.Contains(template, "\n    "+name+": {MemorySize: ") {
			without++
		}
	}
	return without * sum(otherwise, template)
}

// defaultLine is the default of a parameter that is a number.
var defaultLine = regexp.MustCompile(`(?m)^  (\w+):\n(?:    .*\n)*?    Default: "?(\d+)"?$`)

// number returns the value of a parameter that is a whole number: the one given, or else the template's default.
func number(template string, values map[string]string, name string) (int, error) {
	value, given := values[name]
	for _, match := range defaultLine.FindAllStringSubmatch(template, -1) {
		if match[1] == name && !given {
			value = match[2]
		}
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: want a whole number of days", name, value)
	}
	return n, nil
}

// numberLine is a number that is looked up by its text.
var numberLine = regexp.MustCompile(`!FindInMap \[Concurrencies, (\d+), Number\]`)

// settled puts the values of parameters that are numbers where the template refers to them.
func settled(template string, values map[string]string) string {
	text := template
	for _, match := range defaultLine.FindAllStringSubmatch(template, -1) {
		name, value := match[1], match[2]
		if given, is := values[name]; is {
			value = given
		}
		text = regexp.MustCompile(`!Ref `+name+`\b`).ReplaceAllLiteralString(text, value)
	}
	return numberLine.ReplaceAllString(text, "$1")
}

func sum(of *regexp.Regexp, text string) int {
	total := 0
	for _, match := range of.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			panic(err) // It is digits, says the expression.
		}
		total += n
	}
	return total
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

// stateOf returns the state of a stack; empty: it is not there.
func stateOf(ctx context.Context, c *cloudformation.Client, name string) (types.StackStatus, error) {
	found, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "does not exist") {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("state of stack %s: %w", name, err)
	}
	for _, s := range found.Stacks {
		return s.StackStatus, nil
	}
	return "", nil
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

// lacksOfPayloads says what the functions would refuse to start with.
func lacksOfPayloads(a asked) []finding {
	if why := deployed.TooFewPayloadDays(a.payloadDays, a.retentionDays); a.hasPayloads && why != "" {
		return []finding{{true, fmt.Sprintf("PayloadDays is %d, %s (RetentionDays). The functions would not start", a.payloadDays, why)}}
	}
	return nil
}

// lacksOfConcurrency compares what is asked with what the account has. What a stack that is there has reserved is not
// among the unreserved any more, so only the first deployment can be judged.
func lacksOfConcurrency(a asked, has limit, first bool) []finding {
	if has.Total == 0 {
		return []finding{{false, "these credentials may not ask Lambda for the account's quota (lambda:GetAccountSettings), so it was not looked at"}}
	}
	increase := "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value " + strconv.Itoa(max(usual, a.reserved+mustStay))
	if first && a.reserved > 0 && has.Unreserved-a.reserved < mustStay {
		return []finding{{true, fmt.Sprintf(
			"ReserveConcurrency=yes reserves %d executions and %d must stay unreserved, but the account has %d of %d unreserved. Leave it out, or ask for more: %s",
			a.reserved, mustStay, has.Unreserved, has.Total, increase)}}
	}
	if a.used > has.Unreserved && a.reserved == 0 {
		return []finding{{false, fmt.Sprintf(
			"under load the functions would use %d executions at once, and the account has %d: they will be throttled, which makes jobs slower and can put tasks into dead letters. It costs nothing to ask for more: %s",
			a.used, has.Unreserved, increase)}}
	}
	return nil
}
