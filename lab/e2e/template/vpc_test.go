package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// checkVPC: in a VPC each function runs, and no code may touch the interfaces that Lambda makes for it; without
// subnets none of it is there.
func checkVPC(t *template) []string {
	var found []string
	for _, name := range t.Of(functionKind) {
		in := t.inherited(name, "VpcConfig")
		if got := stackfile.Texts(stackfile.At(in, "SubnetIds")); !slices.Equal(got, []string{"subnet-1", "subnet-2"}) || stackfile.Text(stackfile.At(in, "SecurityGroupIds")) != "[sg-1]" {
			found = append(found, fmt.Sprintf("%s runs in the subnets %v with the groups %v", name, got, stackfile.At(in, "SecurityGroupIds")))
		}
		role := strings.TrimSuffix(stackfile.Referred(t.Property(name, "Role")), ".Arn")
		if !slices.Contains(stackfile.Texts(t.Property(role, "ManagedPolicyArns")), "${VpcAccess}") {
			found = append(found, name+" cannot be put into a VPC: its role lacks VpcAccess")
		}
	}
	if !slices.ContainsFunc(stackfile.List(t.Property("VpcAccess", "PolicyDocument", "Statement")), func(s any) bool {
		return stackfile.Text(stackfile.At(s, "Effect")) == "Deny" && stackfile.Text(stackfile.At(s, "Action")) == "ec2:*" && stackfile.At(s, "Condition", "ArnLike", "lambda:SourceFunctionArn") != nil
	}) {
		found = append(found, "the functions' code may use what Lambda needs for the VPC")
	}
	return append(found, t.withoutVPC()...)
}

func (t *template) withoutVPC() []string {
	without := everything()
	without["SubnetIds"] = ""
	outside, err := parse(t.Text, without)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, name := range outside.Of(functionKind) {
		if in := outside.inherited(name, "VpcConfig"); in != nil {
			found = append(found, fmt.Sprintf("%s without subnets: VpcConfig is %v", name, in))
		}
	}
	for _, role := range outside.Of("AWS::IAM::Role") {
		if outside.Property(role, "ManagedPolicyArns") != nil {
			found = append(found, role+" has, without subnets, what a VPC needs")
		}
	}
	return found
}

// checkKeyPolicy: those that the key lets in beside the account, and what they do with it. Logs are as AWS documents
// them: it names no actions one by one.
func checkKeyPolicy(t *template) []string {
	want := []string{
		"Account: kms:*",
		"Deliver: sns.amazonaws.com cloudwatch.amazonaws.com kms:Decrypt kms:GenerateDataKey",
		"Logs: logs.${AWS::Region}.amazonaws.com kms:Encrypt* kms:Decrypt* kms:ReEncrypt* kms:GenerateDataKey* kms:Describe*",
	}
	var got []string
	for _, s := range stackfile.List(t.Property("Key", "KeyPolicy", "Statement")) {
		words := slices.Concat(stackfile.Texts(stackfile.At(s, "Principal", "Service")), stackfile.Texts(stackfile.At(s, "Action")))
		got = append(got, stackfile.Text(stackfile.At(s, "Sid"))+": "+strings.Join(words, " "))
	}
	if !slices.Equal(got, want) {
		return []string{fmt.Sprintf("the key's policy is %q, want %q", got, want)}
	}
	return nil
}

func accessRules() []rule {
	return []rule{
		{"the functions can be put into a VPC", checkVPC, []mistake{
			{"      - SubnetIds: !Split [\",\", !Ref SubnetIds]\n        Sec", "      - Sec", "runs in the subnets []"},
			{"          ManagedPolicyArns: !If [InVpc, [!Ref VpcAccess], !Ref AWS::NoValue]\n", "", "httpAgent cannot be put into a VPC"},
			{"            Effect: Deny\n            Action: ec2:*", "            Effect: Deny\n            Action: ec2:RunInstances", "the functions' code may use"},
			{"ManagedPolicyArns: !If [InVpc, [!Ref VpcAccess], !Ref AWS::NoValue]", "ManagedPolicyArns: [!Ref VpcAccess]", "SchedulerRole has, without subnets"},
		}},
		{"the key lets in who uses it, and nobody else", checkKeyPolicy, []mistake{
			{"[sns.amazonaws.com, cloudwatch.amazonaws.com]", "[sns.amazonaws.com, events.amazonaws.com, cloudwatch.amazonaws.com]", "events.amazonaws.com"},
			{"kms:GenerateDataKey*", "kms:GenerateDataKey", "the key's policy is"},
		}},
	}
}
