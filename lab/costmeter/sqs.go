package costmeter

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// sqsEntry counts a request to SQS: one for every 64 KB of all its messages together. One that was refused is
// one request.
func sqsEntry(input, output any, err error) Entry {
	e := Entry{Requests: 1}
	if err != nil {
		var refused smithy.APIError
		if !errors.As(err, &refused) {
			e.Doubt = "no answer: " + err.Error()
		}
		return e
	}
	bytes := 0
	switch in := input.(type) {
	case *sqs.SendMessageInput:
		bytes, e.Records = len(aws.ToString(in.MessageBody))+sizeOfAttributes(in.MessageAttributes), 1
	case *sqs.SendMessageBatchInput:
		e.Records = len(in.Entries)
		for _, m := range in.Entries {
			bytes += len(aws.ToString(m.MessageBody)) + sizeOfAttributes(m.MessageAttributes)
		}
	case *sqs.ReceiveMessageInput:
		if out, ok := output.(*sqs.ReceiveMessageOutput); ok {
			e.Records = len(out.Messages)
			for _, m := range out.Messages {
				bytes += len(aws.ToString(m.Body)) + sizeOfAttributes(m.MessageAttributes)
			}
		}
	case *sqs.DeleteMessageBatchInput:
		e.Records = len(in.Entries)
	case *sqs.DeleteMessageInput:
		e.Records = 1
	}
	e.Requests = int(unitsOf(bytes, sqsChunk))
	return e
}

// sizeOfAttributes: names, types and values of a message's attributes belong to its size.
func sizeOfAttributes(attributes map[string]types.MessageAttributeValue) int {
	n := 0
	for name, v := range attributes {
		n += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue)) + len(v.BinaryValue)
	}
	return n
}
