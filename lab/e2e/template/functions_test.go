package template

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// environment returns the variables of a function, those of Globals among them.
func (t *template) environment(function string) map[string]string {
	all := map[string]string{}
	for _, of := range []any{stackfile.At(t.Globals, "Function"), any(t.Resources[function].Properties)} {
		variables, _ := stackfile.At(of, "Environment", "Variables").(map[string]any)
		for name, value := range variables {
			all[name] = stackfile.Text(value)
		}
	}
	return all
}

// inherited returns a property of a function, or that of Globals.
func (t *template) inherited(function, property string) any {
	if own := t.Property(function, property); own != nil {
		return own
	}
	return stackfile.At(t.Globals, "Function", property)
}

// checkRecursion: Lambda stops a chain of sixteen invocations, and a job of twenty steps is one. Where no queue
// of ours feeds a function, that guard stays.
func checkRecursion(t *template) []string {
	var found []string
	for _, name := range t.Of(functionKind) {
		want := ""
		if len(t.events(name, "SQS")) > 0 {
			want = "Allow"
		}
		if got := stackfile.Text(t.inherited(name, "RecursiveLoop")); got != want {
			found = append(found, fmt.Sprintf("%s: RecursiveLoop is %q, want %q", name, got, want))
		}
	}
	return found
}

func checkSources(t *template) []string {
	var found []string
	for _, name := range t.Of(functionKind) {
		reserved, is := t.Property(name, "ReservedConcurrentExecutions").(int)
		all := 0
		for _, event := range t.events(name, "SQS") {
			if stackfile.Text(stackfile.At(event, "FunctionResponseTypes")) != "[ReportBatchItemFailures]" {
				found = append(found, name+" fails its whole batch for one message: no ReportBatchItemFailures")
			}
			most := stackfile.Number(stackfile.At(event, "ScalingConfig", "MaximumConcurrency"))
			if all += most; most < 2 {
				found = append(found, fmt.Sprintf("%s: MaximumConcurrency is %d, want at least 2", name, most))
			}
			if size, window := stackfile.Number(stackfile.At(event, "BatchSize")), stackfile.Number(stackfile.At(event, "MaximumBatchingWindowInSeconds")); size < 1 || size > 10 && window == 0 {
				found = append(found, fmt.Sprintf("%s: batches of %d with a window of %d s", name, size, window))
			}
		}
		if all > 0 && (!is || all > reserved) {
			found = append(found, fmt.Sprintf("%s: its sources take %d at once, want at most the %d reserved: a throttled message ages unseen", name, all, reserved))
		}
	}
	return found
}

// checkMade: what each function must say by itself, since the default is wrong for it.
func checkMade(t *template) []string {
	var found []string
	for _, name := range t.Of(functionKind) {
		full := stackfile.Text(t.Property(name, "FunctionName"))
		if !strings.HasPrefix(full, "${AWS::StackName}-") {
			found = append(found, name+" has no name of this stack")
		}
		for property, want := range map[string]string{"Runtime": "provided.al2023", "Handler": "bootstrap"} {
			if got := stackfile.Text(t.inherited(name, property)); got != want {
				found = append(found, fmt.Sprintf("%s: %s is %q, want %s", name, property, got, want))
			}
		}
		if stackfile.Number(t.Property(name, "Timeout")) < 10 || stackfile.Number(t.Property(name, "MemorySize")) < 128 {
			found = append(found, name+" takes the default of 3 seconds, or of memory")
		}
		if !t.hasLogs("/aws/lambda/" + full) {
			found = append(found, name+" has no log group that ends what it keeps")
		}
		if stackfile.Text(stackfile.At(t.Resources[name].Attributes, "Metadata", "BuildMethod")) != "go1.x" {
			found = append(found, name+" cannot be built by sam build")
		}
	}
	return found
}

func (t *template) hasLogs(group string) bool {
	for _, name := range t.Of("AWS::Logs::LogGroup") {
		if stackfile.Text(t.Property(name, "LogGroupName")) == group && stackfile.Number(t.Property(name, "RetentionInDays")) > 0 {
			return true
		}
	}
	return false
}

// rate is the grammar of EventBridge, which cfn-lint does not know: the unit agrees with the number.
var rate = regexp.MustCompile(`^rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\)$`)

func checkSchedule(t *template) []string {
	var found []string
	schedules := 0
	for _, name := range t.Of(functionKind) {
		for _, event := range t.events(name, "ScheduleV2") {
			schedules++
			if expression := stackfile.Text(stackfile.At(event, "ScheduleExpression")); !rate.MatchString(expression) {
				found = append(found, fmt.Sprintf("%s: %q is no rate that EventBridge takes", name, expression))
			}
			if stackfile.Text(stackfile.At(event, "RoleArn")) == "" || stackfile.Text(stackfile.At(event, "DeadLetterConfig", "Arn")) == "" || stackfile.At(event, "RetryPolicy", "MaximumRetryAttempts") == nil {
				found = append(found, name+": its schedule wants a role of its own, dead letters, and a retry policy")
			}
			invoke := t.Property(name, "EventInvokeConfig")
			if stackfile.At(invoke, "MaximumRetryAttempts") != 0 || stackfile.Text(stackfile.At(invoke, "DestinationConfig", "OnFailure", "Destination")) == "" {
				found = append(found, name+" wants no retries by Lambda, and a destination for what failed: the next tick is the retry")
			}
		}
		if len(t.events(name, "Schedule")) > 0 {
			found = append(found, name+" has a rule of the old kind")
		}
	}
	if schedules != 1 {
		found = append(found, fmt.Sprintf("%d schedules, want that of the sweep", schedules))
	}
	return found
}

// checkURLs: a URL that asks nobody, or that others may invoke without a policy of this account, is open to the world.
func checkURLs(t *template) []string {
	var found []string
	for _, name := range t.Of("AWS::Lambda::Url") {
		want := "AWS_IAM"
		if name == publicURL {
			want = "NONE"
		}
		if got := stackfile.Text(t.Property(name, "AuthType")); got != want {
			found = append(found, fmt.Sprintf("%s: AuthType is %q, want %s", name, got, want))
		}
		if t.Property(name, "Cors") != nil {
			found = append(found, name+" lets pages of others knock")
		}
	}
	for _, name := range t.Of("AWS::Lambda::Permission") {
		if stackfile.Text(t.Property(name, "FunctionName")) != "${completeDoor.Arn}" {
			found = append(found, name+" lets others invoke a function")
		}
		if stackfile.Text(t.Property(name, "FunctionUrlAuthType")) != "NONE" && t.Property(name, "InvokedViaFunctionUrl") != true {
			found = append(found, name+" lets others past the URL")
		}
	}
	return append(found, t.checkPublic()...)
}

// publicURL is the one that asks nobody: a completion token says what one may do there.
const publicURL = "completeDoorUrl"

// checkPublic: what is open to the world is there only where that was asked for, and can take no more than its share.
func (t *template) checkPublic() []string {
	var found []string
	for _, name := range []string{"completeDoor", publicURL, "completeDoorPublic", "completeDoorInvoked", "completeDoorRole", "completeDoorLogs"} {
		if stackfile.Text(t.Resources[name].Attributes["Condition"]) != "HasLinks" {
			found = append(found, name+" is there although nobody asked for links")
		}
	}
	if pair(pair(pair(t.Source.Content[0], "Parameters")[1], "CompletionLinks")[1], "Default")[1].Value != "no" {
		found = append(found, "links are made where nobody asked for them")
	}
	if got := stackfile.Number(t.Property("completeDoor", "ReservedConcurrentExecutions")); got < 1 || got > 10 {
		found = append(found, fmt.Sprintf("completeDoor may use a concurrency of %d, want 1 to 10", got))
	}
	if got := t.environment("completeDoor")["MAKEGOOD_DOOR"]; got != "complete" {
		found = append(found, fmt.Sprintf("completeDoor is the door %q", got))
	}
	for _, name := range t.Of(functionKind) {
		if t.Property(name, "FunctionUrlConfig") != nil {
			found = append(found, name+" has a URL of SAM's making")
		}
	}
	return found
}

func functionRules() []rule {
	return []rule{
		{"a function's URL asks IAM who knocks", checkURLs, []mistake{
			{"          AuthType: AWS_IAM\n", "          AuthType: NONE\n", `operateDoorUrl: AuthType is "NONE"`},
			{"      FunctionName: !GetAtt completeDoor.Arn\n      Principal", "      FunctionName: !GetAtt Scheduler.Arn\n      Principal", "completeDoorPublic lets others invoke a function"},
			{"      InvokedViaFunctionUrl: true\n", "", "completeDoorInvoked lets others past the URL"},
			{"    Type: AWS::Lambda::Url\n    Condition: HasLinks\n", "    Type: AWS::Lambda::Url\n", "completeDoorUrl is there although nobody asked"},
			{"who are asked. Reserves a concurrency of 5 for it.\n    Type: String\n    Default: \"no\"", "who are asked.\n    Type: String\n    Default: \"yes\"", "links are made where nobody asked"},
			{"      ReservedConcurrentExecutions: 5\n", "", "completeDoor may use a concurrency of 0"},
			{"          MAKEGOOD_DOOR: complete\n", "          MAKEGOOD_DOOR: operate\n", `completeDoor is the door "operate"`},
			{"          AuthType: AWS_IAM\n", "          AuthType: AWS_IAM\n          Cors: {AllowOrigins: [\"*\"]}\n", "readDoorUrl lets pages of others knock"},
			{"      CodeUri: functions/scheduler", "      CodeUri: functions/scheduler\n      FunctionUrlConfig: {AuthType: NONE}", "Scheduler has a URL of SAM's making"},
		}},
		{"Lambda's guard against loops is off where queues feed a function, and on elsewhere", checkRecursion, []mistake{
			{"          RecursiveLoop: Allow\n", "", `inventoryAgent: RecursiveLoop is "", want "Allow"`},
			{"      CodeUri: functions/supervisor", "      CodeUri: functions/supervisor\n      RecursiveLoop: Allow", `Supervisor: RecursiveLoop is "Allow", want ""`},
		}},
		{"a batch fails by its messages, and no more run than are reserved", checkSources, []mistake{
			{"            FunctionResponseTypes: [ReportBatchItemFailures]\n            Scaling", "            Scaling", "Scheduler fails its whole batch"},
			{"                ScalingConfig: {MaximumConcurrency: !FindInMap [Agents, !Ref Agent, Concurrency, {DefaultValue: 10}]}\n", "", "httpAgent: MaximumConcurrency is 0"},
			{"            ScalingConfig: {MaximumConcurrency: !FindInMap [Concurrencies, !Ref EventsConcurrency, Number]}", "            ScalingConfig: {MaximumConcurrency: 1000}", "Scheduler: its sources take 2000 at once"},
			{"!FindInMap [Concurrencies, !Ref EventsConcurrency, Both]", "!FindInMap [Concurrencies, !Ref EventsConcurrency, Number]", "Scheduler: its sources take 100 at once, want at most the 50 reserved"},
			{"                BatchSize: 10", "                BatchSize: 100", "paymentsAgent: batches of 100 with a window of 0"},
		}},
		{"a function has a name, a runtime, a timeout, and a log that ends", checkMade, []mistake{
			{"    Runtime: provided.al2023\n    Handler", "    Runtime: go1.x\n    Handler", `Scheduler: Runtime is "go1.x"`},
			{"      Timeout: 50\n", "", "Supervisor takes the default"},
			{"LogGroupName: !Sub \"/aws/lambda/${AWS::StackName}-scheduler\"", "LogGroupName: other", "Scheduler has no log group"},
			{"          RetentionInDays: !Ref LogRetentionDays\n", "", "shippingAgent has no log group"},
		}},
		{"the sweep is scheduled, and its failures are kept", checkSchedule, []mistake{
			{"rate(1 minute)", "rate(1 minutes)", `"rate(1 minutes)" is no rate`},
			{"rate(1 minute)", "rate(5 minute)", `"rate(5 minute)" is no rate`},
			{"            RoleArn: !GetAtt ScheduleRole.Arn\n", "", "its schedule wants a role"},
			{"        MaximumRetryAttempts: 0\n", "", "wants no retries by Lambda"},
			{"Type: ScheduleV2", "Type: Schedule", "Supervisor has a rule of the old kind"},
		}},
	}
}
