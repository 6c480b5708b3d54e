package awsnotify

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxEntriesBytes is how large the events of one request may be together (EventBridge: 256 KB, with its overhead).
	maxEntriesBytes = 240 << 10
	// maxTries is how often events are put that the bus did not take, the first time counted too.
	maxTries = 3
)

var errNotTaken = errors.New("it was not taken, and not said why")

var _ changes.Publisher = Bus{}

// Publish puts an event for each run, ten in a request. Those that the bus did not take are put again, twice.
func (b Bus) Publish(ctx context.Context, runs []changes.Run) []error {
	errs := make([]error, len(runs))
	entries := make([]types.PutEventsRequestEntry, len(runs))
	var due []int
	for i, run := range runs {
		detail, err := run.Encode()
		if errs[i] = err; err != nil {
			continue
		}
		at := run.Changes.Changes[len(run.Changes.Changes)-1].At
		entries[i] = types.PutEventsRequestEntry{
			EventBusName: &b.Name, Source: aws.String(Source), DetailType: aws.String(Changes), Detail: &detail, Time: &at,
		}
		due = append(due, i)
	}
	for try := 0; try < maxTries && len(due) > 0 && ctx.Err() == nil; try++ {
		var left []int
		for len(due) > 0 {
			n := fitting(entries, due)
			left = append(left, b.putSome(ctx, entries, due[:n], errs)...)
			due = due[n:]
		}
		due = left
	}
	return errs
}

// fitting is how many of the entries that are due go into one request: one at least.
func fitting(entries []types.PutEventsRequestEntry, due []int) int {
	bytes := 0
	for n, i := range due {
		bytes += len(*entries[i].Detail)
		if n > 0 && (n == limits.MaxBatch || bytes > maxEntriesBytes) {
			return n
		}
	}
	return len(due)
}

// putSome puts entries, records each result, and returns those that were not taken.
func (b Bus) putSome(ctx context.Context, entries []types.PutEventsRequestEntry, due []int, errs []error) (left []int) {
	request := &eventbridge.PutEventsInput{}
	for _, i := range due {
		request.Entries = append(request.Entries, entries[i])
	}
	out, err := b.Client.PutEvents(ctx, request)
	for n, i := range due {
		switch {
		case err != nil:
			// The SDK has tried it several times.
			errs[i] = fmt.Errorf("put changes on bus %s: %w", b.Name, err)
			continue
		case n >= len(out.Entries):
			errs[i] = fmt.Errorf("put changes on bus %s: %w", b.Name, errNotTaken)
		case out.Entries[n].ErrorCode != nil:
			errs[i] = fmt.Errorf("put changes on bus %s: %s: %s", b.Name, *out.Entries[n].ErrorCode, aws.ToString(out.Entries[n].ErrorMessage))
		default:
			errs[i] = nil
			continue
		}
		left = append(left, i)
	}
	return left
}
