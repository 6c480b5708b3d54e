package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
)

const (
	// later is a start that no job of this run comes to.
	later = 24 * time.Hour
	// tries is how often the knockers try, between how far apart: a policy that was just made holds after a while.
	tries   = 6
	between = 10 * time.Second
)

// knock makes the client of the stack: through its doors, or in a rehearsal through some on this machine, since no
// stand-in tells a function who knocks.
func (w *world) knock(ctx context.Context) (err error) {
	if w.options.rehearse {
		if w.client, w.doors, err = localdoors.OnStandIn(ctx, os.Getenv("AWS_ENDPOINT_URL"), stackName, w.config, w.options.account); err == nil {
			w.at = w.doors.Addresses
		}
		return err
	}
	if w.at, err = doors.Find(ctx, w.config, stackName); err != nil {
		return err
	}
	w.client, err = doors.New(doors.Config{AWS: w.config, Stack: stackName, Addresses: w.at})
	return err
}

// mayKnock says which of the knocker's tries each policy of docs/doors.md allows, in the order submitter, reader,
// operator.
func mayKnock() map[string][3]bool {
	return map[string][3]bool{
		"submit":  {true, false, false},
		"read":    {false, true, false},
		"operate": {false, false, true},
		// Past its URL whoever invokes a door could say that they are somebody else.
		"invoke submit":  {false, false, false},
		"invoke read":    {false, false, false},
		"invoke operate": {false, false, false},
	}
}

// knocks deploys the knocker under the three policies of docs/doors.md, and compares at which doors it was let in;
// then it looks who a job says has cancelled it.
func (w *world) knocks(ctx context.Context) ([]string, error) {
	knockers := sam.Stack{Template: "lab/e2e/verify/knockers.yaml", Name: stackName + "-knockers", Parameters: []string{w.architecture(), "Stack=" + stackName}}
	if err := w.put(ctx, knockers); err != nil {
		return nil, err
	}
	event, err := json.Marshal(map[string]string{
		"Stack": stackName, "Submit": w.at.Submit, "Read": w.at.Read, "Operate": w.at.Operate, "Endpoint": w.lambdaEndpoint(),
	})
	if err != nil {
		return nil, err
	}
	want := mayKnock()
	if w.options.rehearse {
		// Only that every try is one that can be allowed; nothing would deny it.
		for try := range want {
			want[try] = [3]bool{true, true, true}
		}
	}
	var found []string
	var wrong []error
	for try := range tries {
		if try > 0 {
			time.Sleep(between)
		}
		answers, err := knocked(ctx, knockers, event)
		if err != nil {
			return nil, err
		}
		if found, wrong = table([]string{"submitter", "reader", "operator"}, answers, want); len(wrong) == 0 {
			break
		}
	}
	if w.options.rehearse {
		found = append(found, "", "This stand-in enforces no IAM, and the URLs are this machine's: on AWS most of these must be denied.")
	}
	who, err := w.cancelledBy(ctx)
	return append(found, "", "A job that was cancelled says that it was by "+who+"."), errors.Join(append(wrong, err)...)
}

// knocked has each knocker try, and returns what they were told.
func knocked(ctx context.Context, knockers sam.Stack, event []byte) ([]map[string]string, error) {
	answers := make([]map[string]string, 3)
	for i, knocker := range []string{"Submitter", "Reader", "Operator"} {
		out, err := knockers.Invoke(ctx, knocker, event)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(out, &answers[i]); err != nil {
			return nil, fmt.Errorf("%s answers %.500s: %w", knocker, out, err)
		}
	}
	return answers, nil
}

// lambdaEndpoint is where Lambda's API is.
func (w *world) lambdaEndpoint() string {
	if endpoint := os.Getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		return endpoint
	}
	return "https://lambda." + w.config.Region + ".amazonaws.com"
}

// cancelledBy submits a job that does not start, cancels it, and returns who that was by its own word, which must be
// who IAM says that we are.
func (w *world) cancelledBy(ctx context.Context) (string, error) {
	const id = "cancelled-at-the-door"
	if _, err := w.client.Submit(ctx, makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(`{"id":"` + id + `"}`), StartAt: time.Now().Add(later)}); err != nil {
		return "", err
	}
	job, err := w.client.Request(ctx, id, api.Request{Verb: makegood.VerbCancel, Reason: "only to see who did"})
	if err != nil {
		return "", err
	}
	want := localdoors.Caller
	if !w.options.rehearse {
		us, err := sts.NewFromConfig(w.config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err
		}
		want = aws.ToString(us.Arn)
	}
	if job.RequestedBy == nil || *job.RequestedBy != want {
		return aws.ToString(job.RequestedBy), fmt.Errorf("job %s says that %q cancelled it, and it was %q", id, aws.ToString(job.RequestedBy), want)
	}
	return want, nil
}

// table compares what was answered with what should be: a column for each of those who tried.
func table(who []string, answers []map[string]string, allowed map[string][3]bool) (found []string, wrong []error) {
	found = []string{"| | " + who[0] + " | " + who[1] + " | " + who[2] + " |", "|---|---|---|---|"}
	for _, try := range slices.Sorted(maps.Keys(allowed)) {
		row := "| " + try
		for i, one := range who {
			got, want := answers[i][try], "denied"
			if allowed[try][i] {
				want = "allowed"
			}
			if got != want {
				wrong = append(wrong, fmt.Errorf("%s: %s is %s, want %s", one, try, got, want))
			}
			row += " | " + got
		}
		found = append(found, row+" |")
	}
	return found, wrong
}
