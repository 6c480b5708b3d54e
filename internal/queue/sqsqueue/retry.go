package sqsqueue

import (
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// kmsThrottles are SQS's words for a key service that had enough of its requests: that of the old
// protocol, which the SDK prefers where it is told, and that of the new one. The SDK takes neither for
// a throttle.
var kmsThrottles = []string{"KMS.ThrottlingException", "KmsThrottled"}

// retryKMS is an option of every request. It puts the throttle of KMS to the errors that the client's own
// retryer tries again, with its backoff and its limit: no second layer of tries.
func retryKMS(o *sqs.Options) { o.Retryer = retry.AddWithErrorCodes(o.Retryer, kmsThrottles...) }
