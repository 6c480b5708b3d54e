package template

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// longestSilence is how long the Supervisor may be silent, in seconds.
const longestSilence = 180

// alarmOn gives the alarm on a metric of something; empty: there is none.
func (t *template) alarmOn(namespace, metric, of string) string {
	for _, name := range t.of(alarmKind) {
		for _, dimension := range list(t.property(name, "Dimensions")) {
			if text(t.property(name, "Namespace")) == namespace && text(t.property(name, "MetricName")) == metric && text(at(dimension, "Value")) == of {
				return name
			}
		}
	}
	return ""
}

func checkWatched(t *template) []string {
	var found []string
	want := func(namespace, metric, of string) {
		if t.alarmOn(namespace, metric, of) == "" {
			found = append(found, fmt.Sprintf("no alarm on %s of %s", metric, of))
		}
	}
	for _, name := range t.of(functionKind) {
		if t.environment(name)[deployed.VarDoor] != "" {
			continue // Whoever knocks is told at once; and a door costs nothing while nobody does.
		}
		full := text(t.property(name, "FunctionName"))
		want("AWS/Lambda", "Errors", full)
		want("AWS/Lambda", "Throttles", full)
	}
	for _, name := range t.of(queueKind) {
		full := text(t.property(name, "QueueName"))
		if t.isDead(name) {
			want("AWS/SQS", "ApproximateNumberOfMessagesVisible", full)
		} else {
			want("AWS/SQS", "ApproximateAgeOfOldestMessage", full)
		}
	}
	want("AWS/DynamoDB", "WriteThrottleEvents", "${Table}")
	want("Makegood", "JobsInError", "${AWS::StackName}")
	return found
}

func checkAlarms(t *template) []string {
	var found []string
	for _, name := range t.of(alarmKind) {
		if text(t.property(name, "AlarmActions")) != "[${AlertTopic}]" {
			found = append(found, name+" tells nobody")
		}
		want := "notBreaching"
		if name == "NoSweep" {
			want = "breaching"
		}
		if got := text(t.property(name, "TreatMissingData")); got != want {
			found = append(found, fmt.Sprintf("%s: no data is %s, want %s", name, got, want))
		}
		if strings.TrimSpace(text(t.property(name, "AlarmDescription"))) == "" {
			found = append(found, name+" does not say what it means")
		}
	}
	silence := number(t.property("NoSweep", "Period")) * number(t.property("NoSweep", "EvaluationPeriods"))
	if t.alarmOn("Makegood", "Swept", "${AWS::StackName}") != "NoSweep" || silence == 0 || silence > longestSilence ||
		text(t.property("NoSweep", "ComparisonOperator")) != "LessThanThreshold" || number(t.property("NoSweep", "Threshold")) != 1 {
		found = append(found, "no alarm on three minutes without a sweep")
	}
	return found
}

func alarmRules() []rule {
	return []rule{
		{"each function, queue and the table is watched", checkWatched, []mistake{
			{`      Dimensions: [{Name: FunctionName, Value: !Sub "${AWS::StackName}-scheduler"}]`, "      Dimensions: []", "no alarm on Errors of ${AWS::StackName}-scheduler"},
			{`Value: !Sub "${AWS::StackName}-tasks-${Agent}-dead"`, `Value: other`, "no alarm on ApproximateNumberOfMessagesVisible of ${AWS::StackName}-tasks-http-dead"},
			{`Value: !Sub "${AWS::StackName}-quarantine"`, "Value: other", "of ${AWS::StackName}-quarantine"},
			{"MetricName: ApproximateAgeOfOldestMessage\n          D", "MetricName: NumberOfMessagesSent\n          D", "ApproximateAgeOfOldestMessage of ${AWS::StackName}-tasks-payments"},
			{"MetricName: Throttles", "MetricName: Errors", "no alarm on Throttles of ${AWS::StackName}-supervisor"},
			{"MetricName: JobsInError", "MetricName: JobsInEror", "no alarm on JobsInError"},
			{"MetricName: WriteThrottleEvents", "MetricName: ReadThrottleEvents", "no alarm on WriteThrottleEvents"},
		}},
		{"an alarm tells the operators, and missing sweeps are one", checkAlarms, []mistake{
			{"          AlarmActions: [!Ref AlertTopic]\n", "", "httpTasksOld tells nobody"},
			{"TreatMissingData: breaching", "TreatMissingData: missing", "NoSweep: no data is missing"},
			{"Period: 60\n      EvaluationPeriods: 3", "Period: 60\n      EvaluationPeriods: 5", "no alarm on three minutes"},
			{"MetricName: Swept", "MetricName: Overdue", "no alarm on three minutes"},
		}},
	}
}
