//go:build localstack

package localstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/lab/testkit/docker"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	stackName        = "makegood-local"
	endpointVariable = "AWS_ENDPOINT_URL"
	// endWithin is how long a test waits for jobs. Functions are started cold, some products run one at a time.
	endWithin = 4 * time.Minute
	// throughDocker is the name by which containers find the machine that they run on.
	throughDocker = "host.docker.internal"
)

// world is the stack as deploy.sh has deployed it, and a shop where its functions look for one.
type world struct {
	t        *testing.T
	aws      aws.Config
	endpoint string
	jobs     *client.Client
	outputs  map[string]string
	shop     *services.Server
	script   services.Script
	// run begins the ids of this run's jobs: the stack may have those of others.
	run string
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, endpoint: os.Getenv(endpointVariable), run: fmt.Sprintf("run-%d", time.Now().UnixMilli())}
	if w.endpoint == "" {
		t.Fatalf("%s must say where a stand-in for AWS answers: run this with make localstack-test", endpointVariable)
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1"} {
		if os.Getenv(name) == "" {
			t.Setenv(name, value)
		}
	}
	t.Logf("%s is %s", w.endpoint, product(t, w.endpoint))
	var err error
	if w.aws, err = config.LoadDefaultConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	described, err := cloudformation.NewFromConfig(w.aws).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String(stackName)})
	if err != nil || len(described.Stacks) != 1 {
		t.Fatalf("describe the stack %s, which localstack/deploy.sh deploys: %+v, %v", stackName, described, err)
	}
	w.outputs = map[string]string{}
	for _, output := range described.Stacks[0].Outputs {
		w.outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	for _, p := range described.Stacks[0].Parameters {
		if aws.ToString(p.ParameterKey) == "Shop" {
			w.openShop(aws.ToString(p.ParameterValue))
		}
	}
	if w.shop == nil {
		t.Fatal("the stack has no parameter Shop")
	}
	return w
}

// product returns name and version of what answers. MiniStack answers at LocalStack's path, too.
func product(t *testing.T, endpoint string) string {
	t.Helper()
	for _, name := range []string{"MiniStack", "LocalStack"} {
		response, err := http.Get(endpoint + "/_" + strings.ToLower(name) + "/health")
		if err != nil {
			t.Fatalf("nothing answers: %v", err)
		}
		var health struct{ Version, Edition string }
		err = json.NewDecoder(response.Body).Decode(&health)
		_ = response.Body.Close() // It was read.
		if response.StatusCode == http.StatusOK && err == nil && health.Version != "" {
			return fmt.Sprintf("%s %s (%s)", name, health.Version, health.Edition)
		}
	}
	return "a product that does not say which"
}

// openShop serves the shop where the stack's functions look for it, and makes the sample order known with it.
func (w *world) openShop(at string) {
	w.t.Helper()
	where, err := url.Parse(at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.script = services.Script{Profile: services.FaultsSome, Seed: 7}
	here := where.Host
	if where.Hostname() == throughDocker {
		here = "127.0.0.1:0"
	}
	if w.shop, err = services.Start(here, services.Options{Script: w.script}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.shop.Close() })
	if where.Hostname() == throughDocker {
		found, err := docker.Find(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		_, stop, err := found.Bridge(w.t.Context(), w.shop.URL(), where.Port())
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(stop)
	}
	// What answers may serve function URLs, and tells no function who knocks: the doors' own functions are behind
	// a URL that does.
	jobs, local, err := localdoors.OnStandIn(w.t.Context(), w.endpoint, stackName, w.aws)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = local.Close() })
	w.jobs = jobs
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(at))
	// Containers and processes that start take their time.
	yaml = bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte("timeout: 5s"))
	if _, err := w.jobs.Publish(w.t.Context(), yaml); err != nil {
		w.t.Fatal(err)
	}
}

// wait waits until a job is as wanted.
func (w *world) wait(id string, is func(makegood.Job) bool) makegood.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), endWithin)
	defer cancel()
	for tick := time.NewTicker(300 * time.Millisecond); ; {
		job, err := w.jobs.Get(ctx, id)
		if err != nil && ctx.Err() == nil {
			w.t.Fatal(err)
		}
		if err == nil && is(job) {
			tick.Stop()
			return job
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("order %s is not as it should be after %s: %+v", id, endWithin, job)
		}
	}
}

// books compares the shop's ledger with how orders ended.
func (w *world) books(ends map[string]makegood.ProcessState) {
	w.t.Helper()
	for _, violation := range services.Check(w.shop.Ledger(), ends) {
		w.t.Error(violation)
	}
}

// invoke runs a function by the API of Lambda, and returns its answer.
func (w *world) invoke(function string, event []byte) string {
	w.t.Helper()
	credentials, err := w.aws.Credentials.Retrieve(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.endpoint+"/2015-03-31/functions/"+function+"/invocations", bytes.NewReader(event))
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256(event)
	if err := v4.NewSigner().SignHTTP(w.t.Context(), credentials, request, hex.EncodeToString(sum[:]), "lambda", w.aws.Region, time.Now()); err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("X-Amz-Function-Error") != "" {
		w.t.Fatalf("invoke %s: %s, error %q, %s, %v", function, response.Status, response.Header.Get("X-Amz-Function-Error"), body, err)
	}
	return string(body)
}
