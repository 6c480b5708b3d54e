package template

import (
	"fmt"
	"slices"
	"strings"
)

// checkVPC: in a VPC each function runs, and no code may touch the interfaces that Lambda makes for it; without
// subnets none of it is there.
func checkVPC(t *template) []string {
	var found []string
	for _, name := range t.of(functionKind) {
		in := t.inherited(name, "VpcConfig")
		if got := texts(at(in, "SubnetIds")); !slices.Equal(got, []string{"subnet-1", "subnet-2"}) || text(at(in, "SecurityGroupIds")) != "[sg-1]" {
			found = append(found, fmt.Sprintf("%s runs in the subnets %v with the groups %v", name, got, at(in, "SecurityGroupIds")))
		}
		role := strings.TrimSuffix(reference(t.property(name, "Role")), ".Arn")
		if !slices.Contains(texts(t.property(role, "ManagedPolicyArns")), "${VpcAccess}") {
			found = append(found, name+" cannot be put into a VPC: its role lacks VpcAccess")
		}
	}
	if !slices.ContainsFunc(list(t.property("VpcAccess", "PolicyDocument", "Statement")), func(s any) bool {
		return text(at(s, "Effect")) == "Deny" && text(at(s, "Action")) == "ec2:*" && at(s, "Condition", "ArnLike", "lambda:SourceFunctionArn") != nil
	}) {
		found = append(found, "the functions' code may use what Lambda needs for the VPC")
	}
	return append(found, t.withoutVPC()...)
}

func (t *template) withoutVPC() []string {
	without := everything()
	without["SubnetIds"] = ""
	outside, err := parse(t.text, without)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, name := range outside.of(functionKind) {
		if in := outside.inherited(name, "VpcConfig"); in != nil {
			found = append(found, fmt.Sprintf("%s without subnets: VpcConfig is %v", name, in))
		}
	}
	for _, role := range outside.of("AWS::IAM::Role") {
		if outside.property(role, "ManagedPolicyArns") != nil {
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
	for _, s := range list(t.property("Key", "KeyPolicy", "Statement")) {
		words := slices.Concat(texts(at(s, "Principal", "Service")), texts(at(s, "Action")))
		got = append(got, text(at(s, "Sid"))+": "+strings.Join(words, " "))
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
