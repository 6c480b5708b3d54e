package sqsbatch

import (
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
)

// maxShare bounds what a message may say of itself: alone in a request, as large as a message can be.
const maxShare = 16 * job.SpentParts

// Spent returns what each record of a batch has cost: it was sent, and received with the others. Of a function
// (function) the batch is one invocation, and Lambda deletes it with one request; elsewhere each is deleted by itself.
// A message without its share of a request was sent alone.
func Spent(batch []events.SQSMessage, function bool) []job.Spent {
	bytes := 0
	for _, record := range batch {
		bytes += len(record.Body) + shareBytes(record)
	}
	common := job.Spent{Requests: spend.Share(bytes, len(batch)) + job.SpentParts}
	if function {
		common.Requests += spend.Part(1, len(batch)) - job.SpentParts
		common.Invocations = spend.Part(1, len(batch))
	}
	all := make([]job.Spent, len(batch))
	for i, record := range batch {
		all[i] = common
		all[i].Requests += share(record)
	}
	return all
}

// share is what a message had of the request that sent it.
func share(record events.SQSMessage) int64 {
	said := record.MessageAttributes[queue.AttributeShare].StringValue
	if said == nil {
		return spend.Share(len(record.Body), 1)
	}
	n, err := strconv.ParseInt(*said, 10, 64)
	if err != nil || n < 1 || n > maxShare {
		return spend.Share(len(record.Body), 1)
	}
	return n
}

// shareBytes is what saying so adds to a message.
func shareBytes(record events.SQSMessage) int {
	a, said := record.MessageAttributes[queue.AttributeShare]
	if !said || a.StringValue == nil {
		return 0
	}
	return len(queue.AttributeShare) + len(a.DataType) + len(*a.StringValue)
}
