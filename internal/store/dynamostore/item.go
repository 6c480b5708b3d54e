package dynamostore

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
)

// The attributes of the items. Those that the pattern names have its names.
const (
	attrPK           = "PK"
	attrSK           = "SK"
	attrRev          = "Rev"
	attrClaimsRev    = "ClaimsRev"
	attrOpen         = "Open"
	attrClaims       = "Claims"
	attrLockedBy     = "LockedBy"
	attrCompleteBy   = "CompleteBy"
	attrShard        = "Shard"
	attrProcessState = "ProcessState"
	attrFailureCount = "FailureCount"
	attrWorkflow     = "Workflow"
	attrData         = "Data"
	// attrBirth is a nonce of Create, by which it knows its own write; the first save removes it.
	attrBirth = "Birth"
	// attrParked is why a job was parked, and attrParkedBy a nonce of that Park; a save removes both.
	attrParked   = "Parked"
	attrParkedBy = "ParkedBy"
	// attrAttention is the sort key of the index of that name, of a job that waits for a person.
	attrAttention = "Attention"
	// attrExpiresAt is when DynamoDB may delete the item, in seconds: that of a job at its end, and of its
	// payloads and details.
	attrExpiresAt = "ExpiresAt"
	// attrDefinition is the hash in the item of a workflow's name.
	attrDefinition = "Definition"

	// The attributes of a slot of Claims; CompleteBy and LockedBy are among them, too.
	attrAttempt   = "Attempt"
	attrStartedAt = "StartedAt"

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
func object(m item) types.AttributeValue       { return &types.AttributeValueMemberM{Value: m} }

func keyItem(pk, sk string) item { return item{attrPK: text(pk), attrSK: text(sk)} }

func hotKey(job string) item { return keyItem(job, sortJob) }

// The readers give the zero value for what is not there or of another type.

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

func asMap(v types.AttributeValue) item {
	if m, ok := v.(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}

func openItem(open map[string]int) types.AttributeValue {
	m := item{}
	for step, attempt := range open {
		m[step] = number(int64(attempt))
	}
	return object(m)
}

func slotItem(c makegood.Claim) types.AttributeValue {
	return object(item{
		attrAttempt: number(int64(c.Attempt)), attrLockedBy: text(c.LockedBy),
		attrStartedAt: instant(c.StartedAt), attrCompleteBy: instant(c.CompleteBy),
	})
}

func asSlot(v types.AttributeValue) (c makegood.Claim, held bool) {
	m := asMap(v)
	return makegood.Claim{
		Attempt: int(asInt(m[attrAttempt])), LockedBy: asText(m[attrLockedBy]),
		StartedAt: asTime(m[attrStartedAt]), CompleteBy: asTime(m[attrCompleteBy]),
	}, m != nil
}

// readBeside gives what an item keeps of a job beside Data.
func readBeside(it item) makegood.Job {
	job := makegood.Job{
		ID: asText(it[attrPK]), Workflow: asText(it[attrWorkflow]),
		ProcessState: makegood.ProcessState(asText(it[attrProcessState])),
		FailureCount: int(asInt(it[attrFailureCount])), LockedBy: asText(it[attrLockedBy]),
		CompleteBy: asTime(it[attrCompleteBy]), Rev: asInt(it[attrRev]),
		Claims: makegood.Claims{Rev: asInt(it[attrClaimsRev])},
	}
	for step, attempt := range asMap(it[attrOpen]) {
		if job.Open == nil {
			job.Open = map[string]int{}
		}
		job.Open[step] = int(asInt(attempt))
	}
	for step, v := range asMap(it[attrClaims]) {
		if job.Claims.Slots == nil {
			job.Claims.Slots = map[string]makegood.Claim{}
		}
		job.Claims.Slots[step], _ = asSlot(v)
	}
	return job
}

// beside puts into one what the item keeps beside Data into the other, and the reason for which it was
// parked.
func (u *unpacked) beside(it item) {
	b := readBeside(it)
	job := &u.job
	job.ID, job.Workflow, job.ProcessState = b.ID, b.Workflow, b.ProcessState
	job.FailureCount, job.LockedBy, job.CompleteBy = b.FailureCount, b.LockedBy, b.CompleteBy
	job.Rev, job.Open, job.Claims = b.Rev, b.Open, b.Claims
	if parked, ok := it[attrParked]; ok {
		job.Reason = asText(parked)
	}
}

// besideItem gives the attributes of a job beside Data, but for its key in the index.
func besideItem(job makegood.Job, rev int64) item {
	slots := item{}
	for step, c := range job.Claims.Slots {
		slots[step] = slotItem(c)
	}
	it := item{
		attrPK: text(job.ID), attrSK: text(sortJob), attrRev: number(rev), attrClaimsRev: number(job.Claims.Rev),
		attrOpen: openItem(job.Open), attrClaims: object(slots), attrLockedBy: text(job.LockedBy),
		attrProcessState: text(string(job.ProcessState)), attrFailureCount: number(int64(job.FailureCount)),
		attrWorkflow: text(job.Workflow),
	}
	if waits := attention(job); waits != "" {
		it[attrAttention] = text(waits)
	}
	return it
}

// shard gives the shard of a job.
func (s *Store) shard(job string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job)) // a hash never fails
	return int64(h.Sum32() % uint32(s.config.Shards))
}

// weight is what an item counts for, in bytes, as DynamoDB's documentation has it.
func weight(it item) int {
	n := 0
	for name, v := range it {
		n += len(name) + weightOf(v)
	}
	return n
}

func weightOf(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + weight(v.Value)
	default:
		panic(fmt.Sprintf("dynamostore: no item of ours holds a %T", v))
	}
}
