package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// used is something that AWS counts and charges for, with the metrics that count it.
type used struct {
	what string
	// dollars is the list price of a million in us-east-1, November 2026.
	dollars float64
	metrics []metric
}

type metric struct {
	namespace, name string
	dimensions      []string
}

// usage is all that a job pays for. Requests to SQS are counted from the messages: one for each that was sent,
// received or deleted is too many, since they come in batches; and logs are left out.
func usage(table string) []used {
	functions := []string{"scheduler", "agent-inventory", "agent-http", "agent-shipping"}
	queues := []string{"events", "tasks-inventory", "tasks-http", "tasks-shipping"}
	var invocations, milliseconds, messages []metric
	for _, f := range functions {
		on := []string{"FunctionName", stackName + "-" + f}
		invocations = append(invocations, metric{"AWS/Lambda", "Invocations", on})
		milliseconds = append(milliseconds, metric{"AWS/Lambda", "Duration", on})
	}
	for _, q := range queues {
		for _, name := range []string{"NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted"} {
			messages = append(messages, metric{"AWS/SQS", name, []string{"QueueName", stackName + "-" + q}})
		}
	}
	capacity := func(name string) []metric {
		all := []metric{{"AWS/DynamoDB", name, []string{"TableName", table}}}
		for _, index := range []string{"CompleteBy", "Attention"} {
			all = append(all, metric{"AWS/DynamoDB", name, []string{"TableName", table, "GlobalSecondaryIndexName", index}})
		}
		return all
	}
	return []used{
		{"write units", 0.625, capacity("ConsumedWriteCapacityUnits")},
		{"read units", 0.125, capacity("ConsumedReadCapacityUnits")},
		{"messages sent, received and deleted", 0.40, messages},
		{"invocations", 0.20, invocations},
		// 256 MB of an arm64 function.
		{"milliseconds of functions", 1e6 * 0.25 / 1000 * 0.0000133334, milliseconds},
	}
}

// bill asks CloudWatch what the orders used, and prices it.
func (w *world) bill(ctx context.Context) ([]string, error) {
	if !w.options.rehearse {
		fmt.Printf("waiting %s for CloudWatch\n", w.options.settle)
		select {
		case <-time.After(w.options.settle):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	outputs, err := w.outputs(ctx, stackName)
	if err != nil {
		return nil, err
	}
	found := []string{"| | all orders | an order | $ for a million orders |", "|---|---:|---:|---:|"}
	total, all := 0.0, 0.0
	for _, u := range usage(outputs["TableName"]) {
		sum := 0.0
		for _, m := range u.metrics {
			n, err := w.counted(ctx, m.namespace, m.name, m.dimensions...)
			if err != nil {
				return found, err
			}
			sum += n
		}
		each := sum / float64(w.jobs)
		total, all = total+each*u.dollars, all+sum
		found = append(found, fmt.Sprintf("| %s | %.0f | %.2f | %.2f |", u.what, sum, each, each*u.dollars))
	}
	found = append(found, fmt.Sprintf("| together | | | %.2f |", total), "",
		"From CloudWatch's counts at list prices; attempts that failed are in it, and so are the sweeps of these minutes. Logs are not.")
	switch {
	case all > 0:
		return found, nil
	case w.options.rehearse:
		return []string{"This stand-in answers, and counts nothing."}, nil
	default:
		return found, errors.New("CloudWatch has counted nothing: wait longer, with -settle")
	}
}
