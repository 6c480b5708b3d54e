package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// longestSilence is how long the Supervisor may be silent, in seconds.
const longestSilence = 180

// alarmOn returns the alarm on a metric of something, named by the values of its dimensions; empty: there is none.
func (t *template) alarmOn(namespace, metric string, of ...string) string {
	for _, name := range t.of(alarmKind) {
		var values []string
		for _, dimension := range list(t.property(name, "Dimensions")) {
			values = append(values, text(at(dimension, "Value")))
		}
		if text(t.property(name, "Namespace")) == namespace && text(t.property(name, "MetricName")) == metric && slices.Equal(values, of) {
			return name
		}
	}
	return ""
}

func checkWatched(t *template) []string {
	var found []string
	want := func(namespace, metric string, of ...string) {
		if t.alarmOn(namespace, metric, of...) == "" {
			found = append(found, fmt.Sprintf("no alarm on %s of %s", metric, strings.Join(of, " ")))
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
	for _, metric := range []string{"WriteThrottleEvents", "ReadThrottleEvents"} {
		want("AWS/DynamoDB", metric, "${Table}")
		// What an index refuses is counted under its own name only.
		for _, index := range list(t.property("Table", "GlobalSecondaryIndexes")) {
			want("AWS/DynamoDB", metric, "${Table}", text(at(index, "IndexName")))
		}
	}
	want("Makegood", "JobsInError", "${AWS::StackName}")
	want("Makegood", "Stray", "${AWS::StackName}")
	want("Makegood", "Lies", "${AWS::StackName}")
	want("Makegood", "Left", "${AWS::StackName}")
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
			{"MetricName: Stray", "MetricName: Strays", "no alarm on Stray"},
			{"MetricName: Lies", "MetricName: Lie", "no alarm on Lies"},
			{"MetricName: Left", "MetricName: Lefts", "no alarm on Left"},
			{"MetricName: WriteThrottleEvents", "MetricName: ReadThrottleEvents", "no alarm on WriteThrottleEvents of ${Table}"},
			{"    - [CompleteBy, Attention]\n", "    - [CompleteBy]\n", "no alarm on WriteThrottleEvents of ${Table} Attention"},
			{"MetricName: ReadThrottleEvents\n          D", "MetricName: ThrottledRequests\n          D", "no alarm on ReadThrottleEvents of ${Table} CompleteBy"},
		}},
		{"an alarm tells the operators, and missing sweeps are one", checkAlarms, []mistake{
			{"          AlarmActions: [!Ref AlertTopic]\n", "", "httpTasksOld tells nobody"},
			{"TreatMissingData: breaching", "TreatMissingData: missing", "NoSweep: no data is missing"},
			{"Period: 60\n      EvaluationPeriods: 3", "Period: 60\n      EvaluationPeriods: 5", "no alarm on three minutes"},
			{"MetricName: Swept", "MetricName: Overdue", "no alarm on three minutes"},
		}},
	}
}
