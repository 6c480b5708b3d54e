package dynamostore

import (
	"context"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The cost of a request follows from the sizes of the items, which are known here before it is made. So a save counts
// its own cost in the job. Requests of other operations are counted in the account of their context (package spend),
// for the next save.

const (
	// readUnit is what one read unit of DynamoDB pays for, in bytes.
	readUnit = 4096
	// keptSeen is how many items are remembered as they were loaded; forgetting one may count its next save too low, where
	// that makes it smaller, or takes it out of the index of attention.
	keptSeen = 256
)

// seen is a hot item as it was loaded: the sizes that determine the cost of a write.
type seen struct {
	rev       int64
	bytes     int
	attention string
	shard     int64
}

// see remembers a hot item.
func (s *Store) see(ctx context.Context, id string, it item) {
	if spend.On(ctx) != nil {
		s.seen.put(id, seen{rev: asInt(it[attrRev]), bytes: sizeOf(it), attention: asText(it[attrAttention]), shard: asInt(it[attrShard])})
	}
}

// readHalves is what a strongly consistent read of so many bytes costs, in halves of a unit.
func readHalves(bytes int) int64 { return 2 * int64(max(1, (bytes+readUnit-1)/readUnit)) }

// sizeOf is the size of an item in bytes, as DynamoDB's documentation has it.
func sizeOf(it item) int {
	n := 0
	for name, v := range it {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v types.AttributeValue) int {
	n := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		for _, element := range v.Value {
			n += sizeOfValue(element) + 1
		}
		return 3 + n
	case *types.AttributeValueMemberSS:
		for _, element := range v.Value {
			n += len(element)
		}
		return n
	case *types.AttributeValueMemberNS:
		for _, element := range v.Value {
			n += len(element)/2 + 2
		}
		return n
	case *types.AttributeValueMemberBS:
		for _, element := range v.Value {
			n += len(element)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberB:
		return len(v.Value)
	default: // BOOL and NULL
		return 1
	}
}

// hasRead counts one read of all the items.
func hasRead(ctx context.Context, items ...item) {
	if account := spend.On(ctx); account != nil {
		bytes := 0
		for _, it := range items {
			bytes += sizeOf(it)
		}
		account.Add(job.Spent{HalfReads: readHalves(bytes)})
	}
}

// hasWritten counts a write that is not of a hot item: no index has any of those. bytes are those of the larger of the
// item before and after.
func hasWritten(ctx context.Context, bytes int) {
	spend.On(ctx).Add(job.Spent{Writes: int64(max(1, units(bytes)))})
}

// partWrites is the cost of writing the parts that data refers to, as putParts does.
func (s *Store) partWrites(id string, p packed) (writes int64) {
	if p.names != nil {
		if _, known := s.shapes.get(p.names.key); !known {
			writes += int64(units(sizeOf(shapeItem(*p.names))))
		}
	}
	for _, d := range p.details {
		if d.body != nil {
			writes += int64(units(sizeOf(s.expiring(detailItem(id, d)))))
		}
	}
	return writes
}

// packCounted packs a job with the cost of writing it added; cost computes that from the packed job.
func packCounted(j job.Job, stored []detail, beside int, cost func(packed) int64) (p packed, counted job.Job) {
	counted = settle(j, func(j job.Job) int64 {
		p = pack(j, stored, beside)
		return cost(p)
	})
	return p, counted
}

// settle returns the job with the cost of writing it added, as cost packs and computes it. The added number may make
// the item larger: by a byte or two, so it settles at once.
func settle(j job.Job, cost func(job.Job) int64) job.Job {
	before := j.Spent.Writes
	for own, next := int64(0), int64(1); own < next; {
		own = next
		j.Spent.Writes = before + own
		next = max(own, cost(j))
	}
	return j
}

// packTransacted packs a new job for a transaction, whole in one item, with the cost of the transaction's writes added,
// if that is counted.
func packTransacted(j job.Job, beside int, parts []item) (data []byte) {
	if !j.Spent.Counted() {
		return packData(j, nil, nil)
	}
	settle(j, func(j job.Job) int64 {
		data = packData(j, nil, nil)
		return transactedWrites(j, beside+len(data), parts)
	})
	return data
}

// transactedWrites is birthWrites in a transaction, with the parts that it writes: DynamoDB prepares and commits each
// item, and takes a unit for either. Indexes follow behind it, as behind any write.
func transactedWrites(j job.Job, bytes int, parts []item) int64 {
	writes := birthWrites(j, bytes) + int64(units(bytes))
	for _, it := range parts {
		writes += 2 * int64(units(sizeOf(it)))
	}
	return writes
}

// birthWrites is the cost of creating an item of so many bytes.
func birthWrites(j job.Job, bytes int) int64 {
	writes := int64(units(bytes))
	if !j.CompleteBy.IsZero() {
		writes++
		if attention(j) != "" {
			writes++
		}
	}
	return writes
}

// saveWrites is what a save costs that makes the item have so many bytes: the larger of the item before and after, and
// what changes in the two indexes.
func (s *Store) saveWrites(change store.Change, bytes int) int64 {
	j := change.Job
	was, known := s.seen.get(j.ID)
	if !known || was.rev != j.Rev {
		was = seen{bytes: bytes, attention: attention(j), shard: s.shard(j)}
	}
	shard := was.shard
	if change.MovesKey() || attention(j) != "" {
		shard = s.shard(j)
	}
	due := entry(was.shard, change.Seen.UnixMilli(), !change.Seen.IsZero())
	dueNow := entry(shard, j.CompleteBy.UnixMilli(), !j.CompleteBy.IsZero())
	waits := entry(was.shard, was.attention, !change.Seen.IsZero() && was.attention != "")
	waitsNow := entry(shard, attention(j), !j.CompleteBy.IsZero() && attention(j) != "")
	return int64(units(max(was.bytes, bytes))) + moveWrites(due, dueNow) + moveWrites(waits, waitsNow)
}

// place is where an item stands in an index; the zero value: nowhere.
type place struct {
	shard int64
	key   any
}

func entry(shard int64, key any, in bool) place {
	if !in {
		return place{}
	}
	return place{shard, key}
}

// moveWrites is the cost of moving an entry of an index, which is smaller than a unit: a write at its old place, and
// one at its new place.
func moveWrites(was, now place) (writes int64) {
	if was == now {
		return 0
	}
	for _, at := range []place{was, now} {
		if at != (place{}) {
			writes++
		}
	}
	return writes
}
