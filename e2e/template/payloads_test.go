package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// onObject is a request for an object of a bucket of this account.
func onObject(action, key string) ask {
	return ask{"s3:" + action, "arn:${AWS::Partition}:s3:::${Payloads}" + key, map[string][]string{"aws:ResourceAccount": {"${AWS::AccountId}"}}}
}

// triesOnPayloads are what a thief with a role might like to do in the bucket. No role deletes what has its name.
func triesOnPayloads() map[string]try {
	const own, others, submitted = "/${AWS::StackName}/agent/payments/order-1/ab", "/${AWS::StackName}/agent/inventory/order-1/ab", "/${AWS::StackName}/submitter/order-1/ab"
	const incoming, othersIncoming = "/${AWS::StackName}/incoming/agent/payments/x", "/${AWS::StackName}/incoming/agent/inventory/x"
	elsewhere := onObject("GetObject", own)
	elsewhere.keys = map[string][]string{"aws:ResourceAccount": {"999999999999"}}
	return map[string]try{
		"write a payload under its own name":     {onObject("PutObject", own), writers(completeRole, agentRole)},
		"write a payload under another's name":   {onObject("PutObject", others), writers(completeRole)},
		"write a payload as a submitter":         {onObject("PutObject", submitted), writers(completeRole)},
		"write parts of its own":                 {onObject("PutObject", incoming), []string{agentRole}},
		"read parts of its own":                  {onObject("GetObject", incoming), []string{agentRole}},
		"take back parts of its own":             {onObject("DeleteObject", incoming), []string{agentRole}},
		"end an upload of its own":               {onObject("AbortMultipartUpload", incoming), []string{agentRole}},
		"write parts of another":                 {onObject("PutObject", othersIncoming), nil},
		"read parts of another":                  {onObject("GetObject", othersIncoming), nil},
		"read another's payload":                 {onObject("GetObject", others), writers(completeRole, agentRole, readRole)},
		"read what was submitted":                {onObject("GetObject", submitted), writers(completeRole, agentRole, readRole)},
		"delete a payload of its own":            {onObject("DeleteObject", own), nil},
		"delete what was submitted":              {onObject("DeleteObject", submitted), nil},
		"list the bucket":                        {onObject("ListBucket", ""), writers(completeRole, readRole)},
		"change when payloads go":                {onObject("PutLifecycleConfiguration", ""), nil},
		"read another stack's payload":           {onObject("GetObject", "/other/agent/payments/order-1/ab"), nil},
		"read from a bucket of another account":  {elsewhere, nil},
		"delete the bucket":                      {onObject("DeleteBucket", ""), nil},
		"let everybody read the bucket":          {onObject("PutBucketPolicy", ""), nil},
		"read an old version, if there were any": {onObject("GetObjectVersion", own), nil},
	}
}

// Without the parameter there is no bucket, nobody may anything of S3, and no function has heard of it.
func TestAStackWithoutABucketKnowsNothingOfS3(t *testing.T) {
	whole, err := parse(readFile(t, templateFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range whole.resources {
		condition := text(r.attributes["Condition"])
		if condition != "" && !whole.conditions[condition] {
			continue
		}
		if strings.HasPrefix(r.kind, "AWS::S3::") || strings.Contains(fmt.Sprint(r.properties), "s3:") {
			t.Errorf("%s is of S3", name)
		}
	}
	if at := whole.environment("Scheduler")["MAKEGOOD_PAYLOADS"]; at != "" {
		t.Errorf("the Scheduler is told of %q", at)
	}
	if got := text(at(whole.outputs, "Payloads", "Value")); got != "-" {
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
	if whole.conditions["MakesBucket"] {
		t.Error("it makes a bucket")
	}
	for _, name := range slices.Concat(whole.of("AWS::IAM::Policy"), whole.of(functionKind)) {
		if strings.Contains(fmt.Sprint(whole.resources[name].properties), "${Payloads}") {
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
	encryption := fmt.Sprint(whole.property("Payloads", "BucketEncryption"))
	if !strings.Contains(encryption, "aws:kms") || !strings.Contains(encryption, "${Key.Arn}") {
		t.Errorf("it is encrypted by %s", encryption)
	}
	closed, _ := whole.property("Payloads", "PublicAccessBlockConfiguration").(map[string]any)
	if len(closed) != 4 || slices.ContainsFunc([]string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}, func(name string) bool { return closed[name] != true }) {
		t.Errorf("it is closed by %v", closed)
	}
	if got := whole.property("Payloads", "VersioningConfiguration"); got != nil {
		t.Errorf("it keeps versions, which would outlive their jobs: %v", got)
	}
	rules := list(whole.property("Payloads", "LifecycleConfiguration", "Rules"))
	if len(rules) != 3 || number(at(rules[0], "ExpirationInDays")) != 2 || text(at(rules[0], "Prefix")) != "${AWS::StackName}/incoming/" ||
		number(at(rules[1], "AbortIncompleteMultipartUpload", "DaysAfterInitiation")) != 2 || number(at(rules[2], "ExpirationInDays")) != 60 {
		t.Errorf("its rules are %v", rules)
	}
	policy := list(whole.property("PayloadsPolicy", "PolicyDocument", "Statement"))
	if len(policy) != 1 || text(at(policy[0], "Effect")) != "Deny" || text(at(policy[0], "Condition", "Bool", "aws:SecureTransport")) != "false" {
		t.Errorf("its policy is %v", policy)
	}
}
