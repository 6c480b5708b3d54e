package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
	"github.com/makegood-dev/makegood/localstack"
)

// expand returns what AWS's SAM transform makes of a template.
func expand(t *testing.T, source string) map[string]stackfile.Resource {
	t.Helper()
	written, err := localstack.Unroll([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(written, &document); err != nil {
		t.Fatal(err)
	}
	whole := stackfile.Decode(document.Content[0]).(map[string]any)
	whole["Transform"] = "AWS::Serverless-2016-10-31"
	in, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	// CodeUri is a folder until sam deploy has put it into a bucket.
	for _, name := range []string{"scheduler", "supervisor", "agent", "door"} {
		in = bytes.ReplaceAll(in, []byte(`"functions/`+name+`"`), []byte(`"s3://bucket/`+name+`"`))
	}
	command := exec.CommandContext(t.Context(), "go", "run", "./lab/e2e/aws", "-run", "sam-translate")
	command.Dir, command.Stdin = "../../..", bytes.NewReader(in)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("sam-translate: %v\n%s", err, stderr.String())
	}
	var expanded struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(out[bytes.IndexByte(out, '{'):], &expanded); err != nil {
		t.Fatal(err)
	}
	all := map[string]stackfile.Resource{}
	for name, r := range expanded.Resources {
		all[name] = stackfile.Resource{Kind: r.Type, Properties: r.Properties}
	}
	return all
}

// checkExpanded: SAM adds no permission of its own, and every mapping and function keeps what the source says.
func checkExpanded(resources map[string]stackfile.Resource) []string {
	var found []string
	count := map[string]int{}
	for name, r := range resources {
		count[r.Kind]++
		// Ours is written as a condition.
		if policies := stackfile.Text(r.Properties["ManagedPolicyArns"]); policies != "" && policies != "map[Fn::If:[InVpc [map[Ref:VpcAccess]] map[Ref:AWS::NoValue]]]" {
			found = append(found, fmt.Sprintf("%s has the managed policies %v", name, r.Properties["ManagedPolicyArns"]))
		}
		if strings.HasPrefix(r.Kind, "AWS::Serverless::") {
			found = append(found, name+" is not expanded")
		}
		if r.Kind == "AWS::Lambda::EventSourceMapping" &&
			(stackfile.Text(r.Properties["FunctionResponseTypes"]) != "[ReportBatchItemFailures]" || stackfile.At(r.Properties, "ScalingConfig", "MaximumConcurrency") == nil) {
			found = append(found, name+" has lost its partial failures, or its limit")
		}
		if r.Kind == "AWS::Lambda::Function" && name != "Supervisor" && !strings.HasSuffix(name, "Door") && stackfile.Text(r.Properties["RecursiveLoop"]) != "Allow" {
			found = append(found, name+" has lost RecursiveLoop")
		}
	}
	for kind, want := range map[string]int{
		"AWS::Lambda::Function": 11, "AWS::Lambda::Url": 4, "AWS::Lambda::EventSourceMapping": 7, "AWS::Scheduler::Schedule": 1,
		"AWS::Lambda::EventInvokeConfig": 1, "AWS::IAM::Role": 12, "AWS::Lambda::Permission": 2, "AWS::SQS::Queue": 16,
	} {
		if count[kind] != want {
			found = append(found, fmt.Sprintf("%d of %s, want %d", count[kind], kind, want))
		}
	}
	slices.Sort(found)
	return found
}

// What SAM makes of the template, by AWS's own translator. make template-check sets SAM_TRANSLATE; make test has
// no Python.
func TestTheExpandedTemplateHasNothingThatWeDidNotWrite(t *testing.T) {
	if os.Getenv("SAM_TRANSLATE") == "" {
		return
	}
	source := readFile(t, templateFile)
	expanded := expand(t, source)
	for _, found := range checkExpanded(expanded) {
		t.Error(found)
	}
	if got, want := len(expanded), load(t, source).Made(); got != want {
		t.Errorf("SAM makes %d resources of it, want the %d that are counted without it", got, want)
	}
	// SAM's own role would have the name of ours.
	wrong := strings.ReplaceAll(source, "SchedulerRole", "SchedulerRights")
	wrong = strings.Replace(wrong, "      Role: !GetAtt SchedulerRights.Arn\n", "", 1)
	found := strings.Join(checkExpanded(expand(t, wrong)), "\n")
	if !strings.Contains(found, "SQSQueueExecutionRole") {
		t.Errorf("a function without a role: got %q, want AWS's managed policy to be found", found)
	}
}
