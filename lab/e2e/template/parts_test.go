package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const (
	queueKind    = "AWS::SQS::Queue"
	functionKind = "AWS::Serverless::Function"
	alarmKind    = "AWS::CloudWatch::Alarm"

	days           = 24 * 60 * 60
	deadRetention  = 14 * days // the longest there is
	liveRetention  = 4 * days  // a message keeps its age when it moves to the dead
	leastOfEvents  = 50        // receives; what fails there is the infrastructure
	leastOfTasks   = 5
	mostOfTasks    = 10
	visibilityPart = 6 // times the function's timeout, as AWS asks
)

// isDead reports whether a queue is one that nothing of ours receives from.
func (t *template) isDead(queue string) bool { return t.consumer(queue) == "" }

// consumer returns the function that a queue feeds; empty: none.
func (t *template) consumer(queue string) string {
	for _, name := range t.Of(functionKind) {
		for _, event := range t.events(name, "SQS") {
			if stackfile.Text(stackfile.At(event, "Queue")) == "${"+queue+".Arn}" {
				return name
			}
		}
	}
	return ""
}

// events returns the properties of a function's events of a kind.
func (t *template) events(function, kind string) []any {
	var all []any
	events, _ := t.Property(function, "Events").(map[string]any)
	for _, event := range events {
		if stackfile.Text(stackfile.At(event, "Type")) == kind {
			all = append(all, stackfile.At(event, "Properties"))
		}
	}
	return all
}

func checkDeadLetters(t *template) []string {
	var found []string
	for _, name := range t.Of(queueKind) {
		retention := stackfile.Number(t.Property(name, "MessageRetentionPeriod"))
		if t.isDead(name) {
			if retention != deadRetention {
				found = append(found, fmt.Sprintf("%s keeps what it has for %d s, want %d", name, retention, deadRetention))
			}
			continue
		}
		if retention == 0 || retention > liveRetention {
			found = append(found, fmt.Sprintf("%s keeps messages for %d s, want %d at most: they keep their age when they die", name, retention, liveRetention))
		}
		receives := stackfile.Number(t.Property(name, "RedrivePolicy", "maxReceiveCount"))
		engine := name == "EventsQueue" || name == "SubmissionsQueue"
		if engine && receives < leastOfEvents || !engine && (receives < leastOfTasks || receives > mostOfTasks) {
			found = append(found, fmt.Sprintf("%s gives a message up after %d receives", name, receives))
		}
		found = append(found, t.checkRedrive(name)...)
	}
	return found
}

// checkRedrive: a queue names its dead letters, and those take from it alone.
func (t *template) checkRedrive(queue string) []string {
	dead := strings.TrimSuffix(strings.TrimPrefix(stackfile.Text(t.Property(queue, "RedrivePolicy", "deadLetterTargetArn")), "${"), ".Arn}")
	if t.Resources[dead].Kind != queueKind {
		return []string{queue + " has no queue of this template for dead letters"}
	}
	from := stackfile.Texts(t.Property(dead, "RedriveAllowPolicy", "sourceQueueArns"))
	if len(from) != 1 || !strings.HasSuffix(from[0], ":"+stackfile.Text(t.Property(queue, "QueueName"))) {
		return []string{fmt.Sprintf("%s takes dead letters of %v, want of %s alone", dead, from, queue)}
	}
	return nil
}

func checkVisibility(t *template) []string {
	var found []string
	for _, name := range t.Of(queueKind) {
		function := t.consumer(name)
		if function == "" {
			continue
		}
		window := stackfile.Number(stackfile.At(t.events(function, "SQS")[0], "MaximumBatchingWindowInSeconds"))
		least := visibilityPart*stackfile.Number(t.Property(function, "Timeout")) + window
		if got := stackfile.Number(t.Property(name, "VisibilityTimeout")); got < least || least == 0 {
			found = append(found, fmt.Sprintf("%s hides a message for %d s, want %d: six times the timeout of %s", name, got, least, function))
		}
	}
	return found
}

func checkEncryption(t *template) []string {
	var found []string
	want := func(name string, path ...string) {
		if key := stackfile.Text(t.Property(name, path...)); key != "${Key}" && key != "${Key.Arn}" {
			found = append(found, fmt.Sprintf("%s: %s is %q, want the key of this template", name, strings.Join(path, "."), key))
		}
	}
	for _, name := range t.Of(queueKind) {
		want(name, "KmsMasterKeyId")
	}
	for _, name := range t.Of("AWS::SNS::Topic") {
		want(name, "KmsMasterKeyId")
	}
	for _, name := range t.Of("AWS::Logs::LogGroup") {
		want(name, "KmsKeyId")
	}
	want("Table", "SSESpecification", "KMSMasterKeyId")
	if t.Property("Key", "EnableKeyRotation") != true {
		found = append(found, "Key is not rotated")
	}
	return found
}

// checkTLS: each queue and topic refuses what comes in the clear, and lets no stranger in.
func checkTLS(t *template) []string {
	refused := map[string]bool{}
	var found []string
	for _, kind := range []string{"AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"} {
		for _, name := range t.Of(kind) {
			for _, s := range stackfile.List(t.Property(name, "PolicyDocument", "Statement")) {
				switch {
				case stackfile.Text(stackfile.At(s, "Effect")) == "Deny" && stackfile.Text(stackfile.At(s, "Condition", "Bool", "aws:SecureTransport")) == "false" && stackfile.Text(stackfile.At(s, "Principal")) == "*":
					refused[stackfile.Text(stackfile.At(s, "Resource"))] = true
				case stackfile.Text(stackfile.At(s, "Condition", "StringEquals", "aws:SourceAccount")) != "${AWS::AccountId}":
					found = append(found, name+" lets others in than services that act for this account")
				}
			}
		}
	}
	for _, name := range t.Of(queueKind) {
		if !refused["${"+name+".Arn}"] {
			found = append(found, name+" takes requests without TLS")
		}
	}
	for _, name := range t.Of("AWS::SNS::Topic") {
		if !refused["${"+name+"}"] {
			found = append(found, name+" takes requests without TLS")
		}
	}
	return found
}

// checkKept: what jobs rest on outlives a mistake.
func checkKept(t *template) []string {
	var found []string
	// The table also if it was made a moment ago: it is protected, and a rollback that must delete it fails. A key
	// is not, and an unused one costs.
	for name, kept := range map[string]string{"Table": "Retain", "Key": "RetainExceptOnCreate"} {
		for attribute, want := range map[string]string{"DeletionPolicy": kept, "UpdateReplacePolicy": "Retain"} {
			if got := stackfile.Text(t.Resources[name].Attributes[attribute]); got != want {
				found = append(found, fmt.Sprintf("%s: %s is %q, want %s", name, attribute, got, want))
			}
		}
	}
	if t.Property("Table", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true {
		found = append(found, "Table cannot be restored to a point in time")
	}
	if t.Property("Table", "DeletionProtectionEnabled") != true {
		found = append(found, "Table is not protected from deletion by default")
	}
	// In a global table each Region would grant a claim.
	if kind := t.Resources["Table"].Kind; kind != "AWS::DynamoDB::Table" {
		found = append(found, "Table is of another kind, "+kind)
	}
	if mode := stackfile.Text(t.Property("Table", "BillingMode")); mode != "PAY_PER_REQUEST" {
		found = append(found, "Table: BillingMode is "+mode)
	}
	return found
}

// checkNamed: what alarms, permissions and the makegood command find by name has that name.
func checkNamed(t *template) []string {
	var found []string
	var names []string
	for _, name := range t.Of(queueKind) {
		full := stackfile.Text(t.Property(name, "QueueName"))
		if !strings.HasPrefix(full, "${AWS::StackName}-") || slices.Contains(names, full) {
			found = append(found, fmt.Sprintf("%s: the name %q is not of this stack, or not its own", name, full))
		}
		names = append(names, full)
	}
	for _, agent := range t.agents() {
		if err := limits.FunctionName.Check(agent); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

func partRules() []rule {
	return []rule{
		{"dead letters are kept for fourteen days, and late enough", checkDeadLetters, []mistake{
			{"MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600", "EventsDeadQueue keeps what it has for 345600 s"},
			{"MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 1209600", "httpTasksQueue keeps messages for 1209600 s"},
			{"maxReceiveCount: 100}", "maxReceiveCount: 5}", "EventsQueue gives a message up after 5"},
			{"maxReceiveCount: 10\n", "maxReceiveCount: 1\n", "paymentsTasksQueue gives a message up after 1"},
			{"deadLetterTargetArn: !GetAtt EventsDeadQueue.Arn, ", "", "EventsQueue has no queue of this template"},
			{"${AWS::AccountId}:${AWS::StackName}-events\"]", "${AWS::AccountId}:${AWS::StackName}-other\"]", "EventsDeadQueue takes dead letters of"},
		}},
		{"a message is hidden for six timeouts", checkVisibility, []mistake{
			{"VisibilityTimeout: 180", "VisibilityTimeout: 179", "EventsQueue hides a message for 179 s, want 180"},
			{"payments: {MemorySize: 256, Timeout: 60", "payments: {MemorySize: 256, Timeout: 61", "paymentsTasksQueue hides a message for 360 s, want 366"},
			{"            BatchSize: 10\n            Fun", "            BatchSize: 10\n            MaximumBatchingWindowInSeconds: 5\n            Fun", "EventsQueue hides a message for 180 s, want 185"},
		}},
		{"all that is stored is encrypted by the key of the stack", checkEncryption, []mistake{
			{"      QueueName: !Sub \"${AWS::StackName}-quarantine\"\n      MessageRetentionPeriod: 1209600\n      KmsMasterKeyId: !Ref Key\n", "      QueueName: !Sub \"${AWS::StackName}-quarantine\"\n      MessageRetentionPeriod: 1209600\n", "QuarantineQueue: KmsMasterKeyId"},
			{"-alerts\"\n      KmsMasterKeyId: !Ref Key", "-alerts\"\n      KmsMasterKeyId: alias/aws/sns", "AlertTopic: KmsMasterKeyId"},
			{", KMSMasterKeyId: !GetAtt Key.Arn", "", "Table: SSESpecification"},
			{"KmsKeyId: !GetAtt Key.Arn", "KmsKeyId: other", "SupervisorLogs: KmsKeyId"},
			{"EnableKeyRotation: true", "EnableKeyRotation: false", "Key is not rotated"},
		}},
		{"queues and topics take TLS only, and no strangers", checkTLS, []mistake{
			{"EventsDeadQueue, QuarantineQueue, SweepsDeadQueue]", "EventsDeadQueue, QuarantineQueue]", "SweepsDeadQueue takes requests without TLS"},
			{"            Action: sns:Publish\n            Resource: !Ref AlertTopic\n            Condition: {Bool: {aws:SecureTransport: \"false\"}}", "            Action: sns:Publish\n            Resource: !Ref AlertTopic", "AlertTopic takes requests without TLS"},
			{"Resource: !Ref AlertTopic\n            Condition: {StringEquals: {aws:SourceAccount: !Ref AWS::AccountId}}", "Resource: !Ref AlertTopic", "AlertTopicPolicy lets others in"},
		}},
		{"the table and its key outlive a mistake", checkKept, []mistake{
			{"    DeletionPolicy: Retain\n", "", "Table: DeletionPolicy"},
			{"DeletionPolicy: Retain\n", "DeletionPolicy: RetainExceptOnCreate\n", "Table: DeletionPolicy"},
			{"PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false", "Table cannot be restored"},
			{"DeletionProtectionEnabled: !If [IsProtected, true, false]", "DeletionProtectionEnabled: false", "Table is not protected"},
			{"Type: AWS::DynamoDB::Table", "Type: AWS::DynamoDB::GlobalTable", "Table is of another kind"},
			{"BillingMode: PAY_PER_REQUEST", "BillingMode: PROVISIONED", "BillingMode is PROVISIONED"},
		}},
		{"queues and agents have names that others can tell", checkNamed, []mistake{
			{"QueueName: !Sub \"${AWS::StackName}-events-dead\"", "QueueName: events-dead", "EventsDeadQueue: the name"},
			{"&agents [", "&agents [big-agent, ", `"big-agent" cannot be the name`},
		}},
	}
}
