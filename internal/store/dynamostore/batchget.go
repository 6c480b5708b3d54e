package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// maxBatchGet is how many items one BatchGetItem may name.
	maxBatchGet = 100
	// maxUnprocessed is how often DynamoDB may leave keys of a batch undone before the read fails. With
	// the backoff of the store that is about five seconds of throttling.
	maxUnprocessed = 10
)

// batchGet reads the items of at most maxBatchGet keys, in no order. Keys that a request leaves undone, for its size or
// since the table is throttled, are asked again after a pause; one that does no key fails, and is retried.
func (s *Store) batchGet(ctx context.Context, ask map[string]types.KeysAndAttributes) ([]item, error) {
	var all []item
	for try := 1; ; try++ {
		out, err := s.config.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: ask, ReturnConsumedCapacity: s.returnConsumed()}, s.options)
		if err != nil {
			return nil, err
		}
		all = append(all, out.Responses[s.config.Table]...)
		ask = out.UnprocessedKeys
		if len(ask) == 0 {
			return all, nil
		}
		if try == maxUnprocessed {
			return nil, fmt.Errorf("%d keys of a batch were left unprocessed %d times", len(ask[s.config.Table].Keys), try)
		}
		if err := s.retryLater(ctx, try); err != nil {
			return nil, err
		}
	}
}

// retryLater waits as the retryer does after a try, and no longer than ctx lasts.
func (s *Store) retryLater(ctx context.Context, try int) error {
	wait, err := s.retryer.RetryDelay(try, nil)
	if err != nil {
		return err
	}
	return pause.For(ctx, wait)
}
