package dynamostore

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes of the items. Those that the pattern names have its names.
const (
	attrPK           = "PK"
	attrSK           = "SK"
	attrRev          = "Rev"
	attrLockedBy     = "LockedBy"
	attrCompleteBy   = "CompleteBy"
	attrShard        = "Shard"
	attrProcessState = "ProcessState"
	attrFailureCount = "FailureCount"
	attrWorkflow     = "Workflow"
	attrData         = "Data"
	// attrBornBy is a nonce of Create, by which it knows its own write; the first save removes it.
	attrBornBy = "BornBy"
	// attrParked is why a job was parked, and attrParkedBy a nonce of that Park; a save removes both.
	attrParked   = "Parked"
	attrParkedBy = "ParkedBy"
	// attrNeeds is the Needs of a job that has one, for Park, which does not decode.
	attrNeeds = "Needs"
	// attrAttention is the sort key of the index of that name, of a job that waits for a person.
	attrAttention = "Attention"
	// attrExpiresAt is when DynamoDB may delete the item, in seconds: that of a job at its end, of its
	// payloads and details, and of a claim.
	attrExpiresAt = "ExpiresAt"
	// attrDefinition is the hash in the item of a workflow's name, and attrFormat says that its table is not one of
	// before claims had items of their own.
	attrDefinition = "Definition"
	attrFormat     = "StoreFormat"

	// The attributes of a claim; LockedBy, CompleteBy and ExpiresAt are among them, too.
	attrAttempt   = "Attempt"
	attrStartedAt = "StartedAt"
	attrClosed    = "Closed"
	attrEnds      = "Ends"
	attrProgress  = "Progress"
	attrBeside    = "Beside"

	// jobPrefix is before a job's id in the partition key of its items, claimPrefix before the agent's name and the
	// job's id in that of its claims. No name and no id holds a #.
	jobPrefix   = "job#"
	claimPrefix = "claim#"

	sortJob        = "job"
	sortShape      = "steps"
	sortDefinition = "definition"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func blob(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func instant(t time.Time) types.AttributeValue { return number(t.UnixMilli()) }

func keyItem(pk, sk string) item { return item{attrPK: text(pk), attrSK: text(sk)} }

// partKey is the key of an item in a job's partition.
func partKey(job, sk string) item { return keyItem(jobPrefix+job, sk) }

func hotKey(job string) item { return partKey(job, sortJob) }

// jobOf returns the id of the job that has the item in its partition.
func jobOf(it item) string { return strings.TrimPrefix(asText(it[attrPK]), jobPrefix) }

// The readers return the zero value for an attribute that is absent or of another type.

func asText(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func asBytes(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

func asInt(v types.AttributeValue) int64 {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func asTime(v types.AttributeValue) time.Time {
	if _, ok := v.(*types.AttributeValueMemberN); !ok {
		return time.Time{}
	}
	return time.UnixMilli(asInt(v)).UTC()
}

// readBeside returns what an item keeps of a job beside Data.
func readBeside(it item) job.Job {
	return job.Job{
		ID: jobOf(it), Workflow: asText(it[attrWorkflow]),
		ProcessState: makegood.ProcessState(asText(it[attrProcessState])),
		FailureCount: int(asInt(it[attrFailureCount])), LockedBy: asText(it[attrLockedBy]),
		CompleteBy: asTime(it[attrCompleteBy]), Rev: asInt(it[attrRev]),
	}
}

// beside puts what the item keeps beside Data into the job that Data says, and the reason for which it was parked.
func beside(j *job.Job, it item) {
	b := readBeside(it)
	j.ID, j.Workflow, j.ProcessState = b.ID, b.Workflow, b.ProcessState
	j.FailureCount, j.LockedBy, j.CompleteBy = b.FailureCount, b.LockedBy, b.CompleteBy
	j.Rev = b.Rev
	if parked, ok := it[attrParked]; ok {
		j.Reason = asText(parked)
	}
}

// besideItem returns the attributes of a job beside Data, but for its key in the index.
func besideItem(j job.Job, rev int64) item {
	it := hotKey(j.ID)
	it[attrRev], it[attrLockedBy], it[attrWorkflow] = number(rev), text(j.LockedBy), text(j.Workflow)
	it[attrProcessState], it[attrFailureCount] = text(string(j.ProcessState)), number(int64(j.FailureCount))
	if waits := attention(j); waits != "" {
		it[attrAttention] = text(waits)
	}
	if j.Needs > 0 {
		it[attrNeeds] = number(int64(j.Needs))
	}
	return it
}

// shard returns the number of the shard that a job's key belongs into.
func (s *Store) shard(j job.Job) int64 {
	if store.Begins(j) {
		return s.beginsIn(j.ID)
	}
	return int64(spread(j.ID) % uint32(s.config.Shards))
}

// spread returns a number by which names are spread over shards.
func spread(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return h.Sum32()
}
