package sqsqueue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// maxRounds is how often an entry of a batch is tried that SQS could not take for reasons of its own.
	maxRounds = 5
	// firstPause is the longest pause after the first round; it doubles with each.
	firstPause = 50 * time.Millisecond
)

// answer is what SQS said of each entry of a batch: the ids of those that it took, and why not the others.
type answer struct {
	taken  []string
	failed []types.BatchResultErrorEntry
}

// answerOf returns the answer with these entries; id returns the id of one that was taken.
func answerOf[T any](failed []types.BatchResultErrorEntry, taken []T, id func(T) *string) answer {
	a := answer{failed: failed}
	for _, entry := range taken {
		a.taken = append(a.taken, aws.ToString(id(entry)))
	}
	return a
}

// entryError is what SQS says of an entry of a batch that it did not take.
type entryError struct {
	code, message string
	// ours: the entry is at fault, and would be the next time too.
	ours bool
}

// Error returns the code and the message.
func (e *entryError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.message) }

// inRounds makes a batch request for the entries at these places, again for those that failed by the fault of SQS,
// and writes each result into errs at its place. The id of an entry is its place.
func inRounds(ctx context.Context, places []int, errs []error, request func(places []int) (answer, error)) {
	for round := 1; ; round++ {
		said, err := request(places)
		if err != nil {
			for _, i := range places {
				errs[i] = err
			}
			return
		}
		places = said.sort(places, errs)
		if len(places) == 0 || round == maxRounds || pause.For(ctx, rand.N(firstPause<<(round-1))) != nil {
			return
		}
	}
}

// sort writes the result of each place into errs, and returns those that should be tried again.
func (a answer) sort(places []int, errs []error) (again []int) {
	for _, i := range places {
		id := strconv.Itoa(i)
		if slices.Contains(a.taken, id) {
			errs[i] = nil
			continue
		}
		failure := &entryError{code: "NoAnswer", message: "SQS gave no result for the message"}
		for _, f := range a.failed {
			if aws.ToString(f.Id) == id {
				failure = read(f)
			}
		}
		errs[i] = failure
		if !failure.ours {
			again = append(again, i)
		}
	}
	return again
}

// read reads a failed entry. What a key or a permission or too much traffic has refused is not the
// fault of the message, though SQS may call it the sender's: no step may fail for it.
func read(f types.BatchResultErrorEntry) *entryError {
	code := bare(aws.ToString(f.Code))
	ours := f.SenderFault
	for _, not := range []string{"kms", "throttl", "accessdenied"} {
		ours = ours && !strings.Contains(strings.ToLower(code), not)
	}
	return &entryError{code: code, message: aws.ToString(f.Message), ours: ours}
}

// bare returns a code of SQS without the prefix that its old protocol puts before some.
func bare(code string) string { return strings.TrimPrefix(code, "AWS.SimpleQueueService.") }
