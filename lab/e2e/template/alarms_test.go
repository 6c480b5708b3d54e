package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// longestSilence is how long the Supervisor may be silent, in seconds.
const longestSilence = 180

// alarmOn returns the alarm on a metric of something, named by the values of its dimensions; empty: there is none.
func (t *template) alarmOn(namespace, metric string, of ...string) string {
	for _, name := range t.Of(alarmKind) {
		var values []string
		for _, dimension := range stackfile.List(t.Property(name, "Dimensions")) {
			values = append(values, stackfile.Text(stackfile.At(dimension, "Value")))
		}
		if stackfile.Text(t.Property(name, "Namespace")) == namespace && stackfile.Text(t.Property(name, "MetricName")) == metric && slices.Equal(values, of) {
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
	for _, name := range t.Of(functionKind) {
		if t.environment(name)[deployed.VarDoor] != "" {
			continue // Whoever knocks is told at once; and a door costs nothing while nobody does.
		}
		full := stackfile.Text(t.Property(name, "FunctionName"))
		want("AWS/Lambda", "Errors", full)
		want("AWS/Lambda", "Throttles", full)
	}
	for _, name := range t.Of(queueKind) {
		full := stackfile.Text(t.Property(name, "QueueName"))
		if t.isDead(name) {
			want("AWS/SQS", "ApproximateNumberOfMessagesVisible", full)
		} else {
			want("AWS/SQS", "ApproximateAgeOfOldestMessage", full)
		}
	}
	for _, metric := range []string{"WriteThrottleEvents", "ReadThrottleEvents"} {
		want("AWS/DynamoDB", metric, "${Table}")
		// What an index refuses is counted under its own name only.
		for _, index := range stackfile.List(t.Property("Table", "GlobalSecondaryIndexes")) {
			want("AWS/DynamoDB", metric, "${Table}", stackfile.Text(stackfile.At(index, "IndexName")))
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
	for _, name := range t.Of(alarmKind) {
		if stackfile.Text(t.Property(name, "AlarmActions")) != "[${AlertTopic}]" {
			found = append(found, name+" tells nobody")
		}
		want := "notBreaching"
		if name == "NoSweep" {
			want = "breaching"
		}
		if got := stackfile.Text(t.Property(name, "TreatMissingData")); got != want {
			found = append(found, fmt.Sprintf("%s: no data is %s, want %s", name, got, want))
		}
		if strings.TrimSpace(stackfile.Text(t.Property(name, "AlarmDescription"))) == "" {
			found = append(found, name+" does not say what it means")
		}
	}
	silence := stackfile.Number(t.Property("NoSweep", "Period")) * stackfile.Number(t.Property("NoSweep", "EvaluationPeriods"))
	if t.alarmOn("Makegood", "Swept", "${AWS::StackName}") != "NoSweep" || silence == 0 || silence > longestSilence ||
		stackfile.Text(t.Property("NoSweep", "ComparisonOperator")) != "LessThanThreshold" || stackfile.Number(t.Property("NoSweep", "Threshold")) != 1 {
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
