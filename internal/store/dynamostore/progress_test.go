package dynamostore

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func largestProgress(at time.Time) job.Progress {
	return job.Progress{Value: `"` + strings.Repeat("x", makegood.MaxProgressBytes-2) + `"`, At: at}
}

// The longest names that there may be, a function of Lambda that claims, and the largest progress: that is a unit still.
func TestTheLargestProgressFitsIntoTheUnitOfItsClaim(t *testing.T) {
	at := time.UnixMilli(1_763_800_000_000)
	name := strings.Repeat("n", limits.MaxNameBytes)
	slot := store.Slot{Agent: name, Job: strings.Repeat("j", makegood.MaxJobIDBytes), Birth: strings.Repeat("b", 26), Step: name}
	it := slotKey(slot)
	maps.Copy(it, slotValues(store.ClaimItem{Claim: job.Claim{
		Attempt: 100, LockedBy: "2026/11/21/[$LATEST]0123456789abcdef0123456789abcdef:" + strings.Repeat("n", 26),
		StartedAt: at, CompleteBy: at, Progress: largestProgress(at),
	}, Ends: at, ExpiresAt: at}))
	maps.DeleteFunc(it, func(_ string, v types.AttributeValue) bool { return v == nil })
	if got := sizeOf(it); got > 1024 {
		t.Errorf("the item weighs %d bytes, want at most 1024", got)
	}
}
