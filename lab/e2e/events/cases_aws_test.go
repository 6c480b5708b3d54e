//go:build aws && linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

// The functions, as processes behind the Runtime API, do with the saved events what is saved beside them. It is
// what make sam-local compares, without Docker.
func TestTheFunctionsDoWhatIsSavedBesideTheEvents(t *testing.T) {
	tables, queues := standin.DynamoDB(t), standin.SQS(t)
	shop, err := services.Start("127.0.0.1:0", services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Close() })
	w := &world{
		db: dynamodb.NewFromConfig(standin.Config(tables.Endpoint)), mq: sqs.NewFromConfig(standin.Config(queues.Endpoint)),
		prefix: fmt.Sprintf("events-%08x-", rand.Uint32()), shop: shop.URL(),
		variables: map[string]string{
			"AWS_REGION": region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
			"AWS_ENDPOINT_URL_DYNAMODB": tables.Endpoint, "AWS_ENDPOINT_URL_SQS": queues.Endpoint,
			"MAKEGOOD_SHOP": shop.URL(), "MAKEGOOD_HTTP_ALLOW": "127.0.0.1",
		},
	}
	var said strings.Builder
	if err := runCases(t.Context(), savedEvents, w, processes(t), &said); err != nil {
		t.Error(err)
	}
	t.Log("\n" + said.String())
}

// processes runs functions as processes, built for this machine.
func processes(t *testing.T) invoker {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", folder+"/", "../../../functions/...").CombinedOutput(); err != nil {
		t.Fatalf("build the functions: %v\n%s", err, out)
	}
	host, err := lambdahost.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return func(ctx context.Context, function string, event []byte, variables map[string]string) (string, error) {
		command := strings.ToLower(function)
		var environment []string
		if agent, is := strings.CutSuffix(function, "Agent"); is {
			command, environment = "agent", append(environment, "MAKEGOOD_AGENT="+agent)
		}
		for name, value := range variables {
			environment = append(environment, name+"="+value)
		}
		f := host.Function(lambdahost.Config{
			Name: function, Command: []string{filepath.Join(folder, command)}, Environment: environment, Timeout: 30 * time.Second,
		})
		answer, err := f.Invoke(ctx, event, "")
		if err != nil {
			return "", fmt.Errorf("%w\n%s", err, f.Output())
		}
		if answer.Failed {
			return "", fmt.Errorf("it answers with an error: %s\n%s", answer.Body, f.Output())
		}
		return string(answer.Body), nil
	}
}
