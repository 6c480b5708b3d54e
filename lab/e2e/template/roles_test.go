package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const supervisorRole, completeRole = "SupervisorRole", "completeDoorRole"

// grants are all that roles may do: by the role, then "action resource", where a role of an agent stands
// under its agent's name as X. What is not here is refused; so the review of a wider permission is the
// review of a line here.
func grants() map[string][]string {
	const table, events, submissions, quarantine, sweeps, key = "${Table.Arn}", "${EventsQueue.Arn}", "${SubmissionsQueue.Arn}", "${QuarantineQueue.Arn}", "${SweepsDeadQueue.Arn}", "${Key.Arn}"
	const replies = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-replies-*"
	take := func(queue string) []string {
		return each(queue, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
	}
	const payloads = "arn:${AWS::Partition}:s3:::${Payloads}"
	kept := func(prefixes ...string) (all []string) {
		for _, p := range prefixes {
			all = append(all, payloads+"/${AWS::StackName}/"+p+"/*")
		}
		return all
	}
	find := each(payloads, "s3:ListBucket")
	// Who runs the Scheduler's code looks at all payloads, and makes them young.
	keep := slices.Concat(find, eachOf(kept("agent", "submitter"), "s3:GetObject", "s3:PutObject"))
	send := func(queue string) []string { return each(queue, "sqs:SendMessage", "sqs:GetQueueUrl") }
	// What each function needs beside: the key, its log, traces.
	usual := func(logs string) []string {
		return slices.Concat(
			each(key, "kms:Decrypt", "kms:GenerateDataKey", "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"),
			each("${"+logs+".Arn}", "logs:CreateLogStream", "logs:PutLogEvents"),
			each("*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"),
			each("*", "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface",
				"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
		)
	}
	return map[string][]string{
		"SchedulerRole": slices.Concat(
			each(table, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query", "dynamodb:DeleteItem"),
			each("${Table.Arn}/index/Attention", "dynamodb:Query"),
			take(events), take(submissions), send(events), send(submissions), send(quarantine), send(replies), send("${XTasksQueue.Arn}"),
			each("${AlertTopic}", "sns:Publish"), each("${Bus.Arn}", "events:PutEvents"),
			each("arn:aws:ssm:eu-central-1:123456789012:parameter/webhook", "ssm:GetParameter"), usual("SchedulerLogs"), keep,
		),
		"XAgentRole": slices.Concat(
			each(table, "dynamodb:UpdateItem", "dynamodb:GetItem"), take("${XTasksQueue.Arn}"), send("${XTasksQueue.Arn}"),
			send(events), send(quarantine), usual("XAgentLogs"),
			each("arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/makegood/${AWS::StackName}/X/*", "ssm:GetParameter"),
			eachOf(kept("agent/X", "incoming/agent/X"), "s3:PutObject", "s3:AbortMultipartUpload"),
			eachOf(kept("agent", "submitter", "incoming/agent/X"), "s3:GetObject"), eachOf(kept("incoming/agent/X"), "s3:DeleteObject"),
		),
		"submitDoorRole": slices.Concat(
			each(table, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query", "dynamodb:DeleteItem"),
			send(events), send("${XTasksQueue.Arn}"), usual("submitDoorLogs"), keep,
		),
		"operateDoorRole": slices.Concat(
			each(table, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query", "dynamodb:DeleteItem"),
			each("${Table.Arn}/index/Attention", "dynamodb:Query"),
			send(events), send("${XTasksQueue.Arn}"), usual("operateDoorLogs"), keep,
		),
		// What it may write to is narrowed to jobs, claims and gates; see checkNarrow.
		"completeDoorRole": slices.Concat(
			each(table, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query", "dynamodb:DeleteItem"),
			send(events), send("${XTasksQueue.Arn}"), usual("completeDoorLogs"), keep,
		),
		// It shows, and can change nothing: not one action that writes.
		"readDoorRole": slices.Concat(
			each(table, "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan"),
			each("${Table.Arn}/index/CompleteBy", "dynamodb:Query"), each("${Table.Arn}/index/Attention", "dynamodb:Query"),
			each("${XTasksQueue.Arn}", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"), usual("readDoorLogs"), find, eachOf(kept("agent", "submitter"), "s3:GetObject"),
		),
		"SupervisorRole": slices.Concat(
			each("${Table.Arn}/index/CompleteBy", "dynamodb:Query"), each(table, "dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:Scan"),
			send(events), each(events, "sqs:GetQueueAttributes"), each(sweeps, "sqs:SendMessage"), usual("SupervisorLogs"),
		),
		"ScheduleRole": slices.Concat(
			each("arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-supervisor", "lambda:InvokeFunction"),
			each(sweeps, "sqs:SendMessage"), each(key, "kms:Decrypt", "kms:GenerateDataKey"),
		),
	}
}

func each(resource string, actions ...string) []string {
	var all []string
	for _, a := range actions {
		all = append(all, a+" "+resource)
	}
	return all
}

// eachOf is each, of several resources.
func eachOf(resources []string, actions ...string) []string {
	var all []string
	for _, r := range resources {
		all = append(all, each(r, actions...)...)
	}
	return all
}

// agents returns the names of the agents that have a function.
func (t *template) agents() []string {
	var names []string
	for _, name := range t.Of(functionKind) {
		if agent := t.environment(name)["MAKEGOOD_AGENT"]; agent != "" {
			names = append(names, agent)
		}
	}
	slices.Sort(names)
	return names
}

func checkGrants(t *template) []string {
	var found []string
	for _, role := range t.Of("AWS::IAM::Role") {
		granted := map[string]bool{}
		for _, statement := range t.Statements(role) {
			if stackfile.Text(stackfile.At(statement, "Effect")) != "Allow" {
				continue
			}
			for _, action := range stackfile.Texts(stackfile.At(statement, "Action")) {
				for _, on := range stackfile.Texts(stackfile.At(statement, "Resource")) {
					granted[action+" "+on] = true
				}
			}
		}
		found = append(found, differences(role, granted, t.allowed(role))...)
	}
	return found
}

// allowed returns what a role may do, with the agents' names in place of X: of an agent's role its own.
func (t *template) allowed(role string) map[string]bool {
	allowed := map[string]bool{}
	for _, agent := range t.agents() {
		kind := role
		if role == agent+"AgentRole" {
			kind = "XAgentRole"
		}
		for _, grant := range grants()[kind] {
			allowed[strings.NewReplacer("${XTasks", "${"+agent+"Tasks", "${XAgent", "${"+agent+"Agent", "/X/", "/"+agent+"/").Replace(grant)] = true
		}
	}
	return allowed
}

func differences(role string, granted, allowed map[string]bool) []string {
	var found []string
	for _, grant := range slices.Sorted(maps.Keys(granted)) {
		if !allowed[grant] {
			found = append(found, fmt.Sprintf("%s may %s, which is not on the list", role, grant))
		}
	}
	for _, grant := range slices.Sorted(maps.Keys(allowed)) {
		if !granted[grant] {
			found = append(found, fmt.Sprintf("%s may not %s, which is on the list", role, grant))
		}
	}
	return found
}

// checkNarrow: where one table holds all, conditions keep the agents and the Supervisor to their parts of it.
func checkNarrow(t *template) []string {
	var found []string
	for _, role := range t.Of("AWS::IAM::Role") {
		if role == "SchedulerRole" || role == "submitDoorRole" || role == "operateDoorRole" {
			continue // These run the Scheduler's code.
		}
		for _, s := range t.Statements(role) {
			actions := stackfile.Texts(stackfile.At(s, "Action"))
			writes := slices.ContainsFunc(actions, func(a string) bool { return a == "dynamodb:UpdateItem" || a == "dynamodb:DeleteItem" })
			var want []string
			switch {
			case !writes:
				continue
			case role == completeRole && slices.Contains(actions, "dynamodb:DeleteItem"):
				want = []string{"ForAllValues:StringLike dynamodb:LeadingKeys gate#*", "Null dynamodb:LeadingKeys false"}
			case role == completeRole:
				want = []string{"ForAllValues:StringLike dynamodb:LeadingKeys job#* claim#* gate#*", "Null dynamodb:LeadingKeys false"}
			case role == "SupervisorRole":
				want = []string{"ForAllValues:StringLike dynamodb:LeadingKeys lease#*", "Null dynamodb:LeadingKeys false"}
			default:
				want = []string{
					"ForAllValues:StringEquals dynamodb:Attributes PK SK Attempt LockedBy StartedAt CompleteBy ExpiresAt Closed Ends Progress Beside",
					"ForAllValues:StringLike dynamodb:LeadingKeys claim#" + strings.TrimSuffix(role, "AgentRole") + "#*",
					"Null dynamodb:LeadingKeys false",
				}
			}
			if got := flat(stackfile.At(s, "Condition")); !slices.Equal(got, want) {
				found = append(found, fmt.Sprintf("%s writes to the table if %q, want %q", role, got, want))
			}
		}
	}
	return found
}

// flat writes the parts of a condition, sorted.
func flat(condition any) []string {
	var all []string
	operators, _ := condition.(map[string]any)
	for operator, keys := range operators {
		for key, values := range keys.(map[string]any) {
			all = append(all, operator+" "+key+" "+strings.Join(stackfile.Texts(values), " "))
		}
	}
	slices.Sort(all)
	return all
}

// checkOwnRoles: without a role of its own, SAM gives a function that reads a queue AWS's managed policy, which
// lets it drain every queue of the account.
func checkOwnRoles(t *template) []string {
	var found []string
	users := map[string]string{}
	for _, name := range t.Of(functionKind) {
		role := strings.TrimSuffix(strings.TrimPrefix(stackfile.Text(t.Property(name, "Role")), "${"), ".Arn}")
		if t.Resources[role].Kind != "AWS::IAM::Role" {
			found = append(found, name+" has no role of this template")
		}
		if other := users[role]; other != "" {
			found = append(found, fmt.Sprintf("%s and %s share the role %s", other, name, role))
		}
		users[role] = name
		if t.Property(name, "Policies") != nil {
			found = append(found, name+" has policies that SAM would expand")
		}
	}
	for _, role := range t.Of("AWS::IAM::Role") {
		for _, arn := range stackfile.List(t.Property(role, "ManagedPolicyArns")) {
			if t.Resources[stackfile.Referred(arn)].Kind != "AWS::IAM::ManagedPolicy" {
				found = append(found, role+" has a managed policy that is not of this template")
			}
		}
		found = append(found, t.checkTrust(role)...)
	}
	return found
}

func (t *template) checkTrust(role string) []string {
	for _, s := range stackfile.List(t.Property(role, "AssumeRolePolicyDocument", "Statement")) {
		service := stackfile.Text(stackfile.At(s, "Principal", "Service"))
		switch {
		case service == "lambda.amazonaws.com":
		case service == "scheduler.amazonaws.com":
			condition := stackfile.At(s, "Condition", "StringEquals")
			if stackfile.Text(stackfile.At(condition, "aws:SourceArn")) == "" || stackfile.Text(stackfile.At(condition, "aws:SourceAccount")) != "${AWS::AccountId}" {
				return []string{role + " may be taken for schedules of others: want aws:SourceArn and aws:SourceAccount"}
			}
		default:
			return []string{fmt.Sprintf("%s may be taken by %q", role, service)}
		}
	}
	return nil
}

// checkReasons: a wildcard in what is allowed has its reason beside it, as a comment.
func checkReasons(t *template) []string {
	var found []string
	walk(t.Source, func(m *yaml.Node) {
		if pair(m, "Effect") == nil || pair(m, "Effect")[1].Value != "Allow" {
			return
		}
		for _, name := range []string{"Action", "Resource", "Principal"} {
			p := pair(m, name)
			if p == nil || !hasWildcard(p[1]) {
				continue
			}
			comments := p[0].HeadComment + p[0].LineComment + p[1].HeadComment + p[1].LineComment
			if name == "Principal" || strings.TrimLeft(comments, "# ") == "" {
				found = append(found, fmt.Sprintf("line %d: a wildcard in %s without a reason beside it", p[1].Line, name))
			}
		}
	})
	return found
}

func walk(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.MappingNode {
		visit(n)
	}
	for _, each := range n.Content {
		walk(each, visit)
	}
}

// pair returns the key and the value of a mapping; nil: it is not there.
func pair(m *yaml.Node, name string) []*yaml.Node {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i : i+2]
		}
	}
	return nil
}

func hasWildcard(n *yaml.Node) bool {
	return strings.Contains(n.Value, "*") || slices.ContainsFunc(n.Content, hasWildcard)
}

func roleRules() []rule {
	return []rule{
		{"each role may do what is listed, and nothing else", checkGrants, []mistake{
			{"[dynamodb:GetItem, dynamodb:BatchGetItem", "[dynamodb:GetItem, dynamodb:PutItem, dynamodb:BatchGetItem", "readDoorRole may dynamodb:PutItem ${Table.Arn}, which"},
			{"Roles: [!Ref readDoorRole]", "Roles: [!Ref readDoorRole, !Ref submitDoorRole]", "submitDoorRole may dynamodb:Scan"},
			{"[!Ref SchedulerRole, !Ref submitDoorRole, !Ref operateDoorRole, ", "[!Ref SchedulerRole, !Ref submitDoorRole, ", "operateDoorRole may not sqs:SendMessage ${paymentsTasksQueue.Arn}"},
			{"[dynamodb:GetItem, dynamodb:PutItem", "[dynamodb:GetItem, dynamodb:Scan, dynamodb:PutItem", "SchedulerRole may dynamodb:Scan ${Table.Arn}, which"},
			{"Action: dynamodb:Query", "Action: dynamodb:*", "SupervisorRole may dynamodb:*"},
			{"${Table.Arn}/index/CompleteBy", "${Table.Arn}/index/*", "SupervisorRole may dynamodb:Query ${Table.Arn}/index/*"},
			{"[dynamodb:UpdateItem, dynamodb:GetItem]", "[dynamodb:UpdateItem, dynamodb:GetItem, dynamodb:DeleteItem]", "paymentsAgentRole may dynamodb:DeleteItem"},
			{"[dynamodb:UpdateItem, dynamodb:GetItem]", "[dynamodb:GetItem]", "httpAgentRole may not dynamodb:UpdateItem ${Table.Arn}, which"},
			{
				"sqs:GetQueueUrl]\n                    Resource: {\"Fn::GetAtt\": [!Sub \"${Agent}TasksQueue\", Arn]}",
				"sqs:GetQueueUrl]\n                    Resource: !GetAtt httpTasksQueue.Arn", "paymentsAgentRole may sqs:ReceiveMessage ${httpTasksQueue.Arn}, which",
			},
		}},
		{"agents write claims only, and the Supervisor leases only", checkNarrow, []mistake{
			{"Closed, Ends, Progress, Beside]", "Closed, Ends, Progress, Beside, Shard]", "shippingAgentRole writes to the table if"},
			{`[!Sub "claim#${Agent}#*"]`, `["claim#*"]`, "httpAgentRole writes"},
			{`["lease#*"]`, `["*"]`, "SupervisorRole writes to the table if"},
			{`["job#*", "claim#*", "gate#*"]`, `["*"]`, "completeDoorRole writes to the table if"},
			{`{dynamodb:LeadingKeys: ["gate#*"]}`, `{dynamodb:LeadingKeys: ["*"]}`, "completeDoorRole writes to the table if"},
		}},
		{"what a thief of a role can do is known", checkTries, []mistake{
			{`[!Sub "claim#${Agent}#*"]`, `["claim#*"]`, "paymentsAgentRole may read another agent's claim"},
			{`[!Sub "claim#${Agent}#*"]`, `[!Sub "claim#${Agent}*"]`, "paymentsAgentRole may claim a step of an agent whose name is longer"},
			{"[s3:GetObject, s3:PutObject]", "[s3:GetObject, s3:PutObject, s3:DeleteObject]", "SchedulerRole may delete what was submitted"},
			{"${AWS::StackName}/agent/${Agent}/*", "${AWS::StackName}/agent/*", "paymentsAgentRole may write a payload under another's name"},
			{`{dynamodb:LeadingKeys: ["holds#"]}`, `{dynamodb:LeadingKeys: ["*"]}`, "paymentsAgentRole may read another agent's claim"},
			{"Closed, Ends, Progress, Beside]", "Closed, Ends, Progress, Beside, Shard]", "paymentsAgentRole may move a claim of its own into the index"},
			{"SK, Attempt, LockedBy, StartedAt", "SK, Attempt, LockedBy", "paymentsAgentRole cannot claim a step of its own"},
			{`dynamodb:LeadingKeys: ["lease#*"]`, `dynamodb:LeadingKeys: ["*"]`, "SupervisorRole may take a job out of the index"},
			{`"definition#*", "steps#*", "holds#"`, `"definition#*", "holds#"`, "completeDoorRole cannot read the names of steps"},
			{`["job#*", "claim#*", "gate#*"]`, `["job#*", "claim#*"]`, "completeDoorRole cannot take a permit of an agent"},
			{`{dynamodb:LeadingKeys: ["gate#*"]}`, `{dynamodb:LeadingKeys: ["*"]}`, "SchedulerRole may delete a job"},
			{"ProcessState, CompleteBy, Shard, ExpiresAt]", "ProcessState, CompleteBy, Shard, ExpiresAt, Data]", "SupervisorRole may audit what jobs hold"},
			{"                  StringEquals: {dynamodb:Select: SPECIFIC_ATTRIBUTES}\n                  \"Null\": {dynamodb:Attributes: false}\n", "", "SupervisorRole may read the table through"},
			{"                      \"Null\": {dynamodb:LeadingKeys: false}\n", "", "paymentsAgentRole may write without naming a key"},
		}},
		{"each function has a role of its own, and only its service takes it", checkOwnRoles, []mistake{
			{"      Role: !GetAtt SchedulerRole.Arn\n", "", "Scheduler has no role"},
			{"!GetAtt SupervisorRole.Arn", "!GetAtt SchedulerRole.Arn", "share the role"},
			{"                aws:SourceArn: !GetAtt Schedules.Arn\n", "", "ScheduleRole may be taken for schedules of others"},
			{"      CodeUri: functions/scheduler", "      CodeUri: functions/scheduler\n      Policies: [AmazonSQSFullAccess]", "policies that SAM would expand"},
		}},
		{"a wildcard has a reason beside it", checkReasons, []mistake{
			{" # X-Ray knows no resources for these", "", "a wildcard in Resource without"},
			{"Action: sns:Publish\n            Resource: !Ref AlertTopic\n            Condition: {StringEquals", "Action: sns:*\n            Resource: !Ref AlertTopic\n            Condition: {StringEquals", "a wildcard in Action"},
			{"Principal: {Service: cloudwatch.amazonaws.com}", `Principal: "*"`, "a wildcard in Principal"},
		}},
	}
}
