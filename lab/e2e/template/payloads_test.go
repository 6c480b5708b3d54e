package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// Without the parameter there is no bucket, nobody may anything of S3, and no function has heard of it.
func TestAStackWithoutABucketKnowsNothingOfS3(t *testing.T) {
	whole, err := parse(readFile(t, templateFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range whole.Resources {
		condition := stackfile.Text(r.Attributes["Condition"])
		if condition != "" && !whole.Conditions[condition] {
			continue
		}
		if strings.HasPrefix(r.Kind, "AWS::S3::") || strings.Contains(fmt.Sprint(r.Properties), "s3:") {
			t.Errorf("%s is of S3", name)
		}
	}
	if at := whole.environment("Scheduler")["MAKEGOOD_PAYLOADS"]; at != "" {
		t.Errorf("the Scheduler is told of %q", at)
	}
	if got := stackfile.Text(stackfile.At(whole.Outputs, "Payloads", "Value")); got != "-" {
		t.Errorf("the output is %q, want a dash", got)
	}
}

// Where a bucket is named, the stack makes none, and its roles are for that one.
func TestAStackWithABucketOfYoursUsesThatAlone(t *testing.T) {
	parameters := everything()
	parameters["PayloadBucket"] = "ours"
	whole, err := parse(readFile(t, templateFile), parameters)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Conditions["MakesBucket"] {
		t.Error("it makes a bucket")
	}
	for _, name := range slices.Concat(whole.Of("AWS::IAM::Policy"), whole.Of(functionKind)) {
		if strings.Contains(fmt.Sprint(whole.Resources[name].Properties), "${Payloads}") {
			t.Errorf("%s speaks of the bucket that is not made", name)
		}
	}
	if at := whole.environment("paymentsAgent")["MAKEGOOD_PAYLOADS"]; at != "ours/${AWS::StackName}" {
		t.Errorf("an agent is told of %q", at)
	}
}

// What the bucket of the stack must be: encrypted, closed, and with an end to everything.
func TestTheBucketIsEncryptedClosedAndEnds(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	encryption := fmt.Sprint(whole.Property("Payloads", "BucketEncryption"))
	if !strings.Contains(encryption, "aws:kms") || !strings.Contains(encryption, "${Key.Arn}") {
		t.Errorf("it is encrypted by %s", encryption)
	}
	closed, _ := whole.Property("Payloads", "PublicAccessBlockConfiguration").(map[string]any)
	if len(closed) != 4 || slices.ContainsFunc([]string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}, func(name string) bool { return closed[name] != true }) {
		t.Errorf("it is closed by %v", closed)
	}
	if got := whole.Property("Payloads", "VersioningConfiguration"); got != nil {
		t.Errorf("it keeps versions, which would outlive their jobs: %v", got)
	}
	rules := stackfile.List(whole.Property("Payloads", "LifecycleConfiguration", "Rules"))
	if len(rules) != 3 || stackfile.Number(stackfile.At(rules[0], "ExpirationInDays")) != 2 || stackfile.Text(stackfile.At(rules[0], "Prefix")) != "${AWS::StackName}/incoming/" ||
		stackfile.Number(stackfile.At(rules[1], "AbortIncompleteMultipartUpload", "DaysAfterInitiation")) != 2 || stackfile.Number(stackfile.At(rules[2], "ExpirationInDays")) != 60 {
		t.Errorf("its rules are %v", rules)
	}
	policy := stackfile.List(whole.Property("PayloadsPolicy", "PolicyDocument", "Statement"))
	if len(policy) != 1 || stackfile.Text(stackfile.At(policy[0], "Effect")) != "Deny" || stackfile.Text(stackfile.At(policy[0], "Condition", "Bool", "aws:SecureTransport")) != "false" {
		t.Errorf("its policy is %v", policy)
	}
}
