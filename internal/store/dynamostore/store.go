// Package dynamostore keeps jobs in one DynamoDB table: one hot item a job and one claim item a step, changed only by
// conditional writes, and a sparse, sharded, keys-only index on CompleteBy, in which claims are not. Every Create,
// Save, Claim, Heartbeat and Park is one such write, a Close a read and a write, or the write alone where it takes a
// reply; every load that decides is strongly consistent. docs/architecture.md shows the expressions.
//
// The SDK retries. So a condition that fails may have been met before, by our own request with a lost answer; each
// write recognises its own in the old item.
//
// The package makes no decision about jobs, and no table in production: template.yaml does.
package dynamostore

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/store"
)

var (
	_ store.Store  = (*Store)(nil)
	_ store.Lister = (*Store)(nil)
)

const (
	// DefaultShards is how many shards the index has unless the configuration says otherwise. One takes
	// about 500 keys a second that move.
	DefaultShards = 16
	// maxShards bounds what a sweep has to go through.
	maxShards = 1024
	// maxTries is how often a request is made in all, while its context lasts. With the backoff below
	// that is about ten seconds of throttling.
	maxTries = 12
	// firstBackoff and maxBackoff bound the waits between them: a random part of firstBackoff * 2^n.
	firstBackoff = 25 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// keptShapes and keptSpills bound the memory of earlier reads; forgetting costs a request.
	keptShapes = 1000
	keptSpills = 64
)

// Config says where the jobs are.
type Config struct {
	// Client speaks to DynamoDB. Its retryer is not used: this package brings its own, which knows
	// TransactionConflictException, and stacking two would multiply their tries.
	Client *dynamodb.Client
	// Table and Index are the names of the table and of its index on CompleteBy; see Schema.
	Table, Index string
	// Shards is how many the index has; zero: DefaultShards. It may be raised later, never lowered: a job stays in the
	// shard that it was born into, which no sweep would visit any more.
	Shards int
	// Retention is how long a job is kept after its end; zero: for ever. At least MinRetention. Its payloads
	// are kept up to 60 days longer. It may be changed at any time, for jobs that end from then on.
	Retention time.Duration
	// Now defaults to time.Now. It decides only which items expire.
	Now func() time.Time
	// Consumed, if set, is told what each request that succeeded has cost. Many goroutines call it.
	Consumed func(operation string, capacity types.ConsumedCapacity)
}

// Store is a store.Store on DynamoDB. It may be used by many goroutines at once, and needs no closing.
type Store struct {
	config  Config
	retryer aws.Retryer
	shapes  *memory[[]string]
	// spills are the details of jobs as they were loaded. They need not be those of the latest revision: a save uses the
	// ones that still fit.
	spills *memory[[]detail]
	// seen are hot items as they were loaded, where costs are counted.
	seen *memory[seen]
}

// New makes a store. It makes no request to DynamoDB.
func New(c Config) (*Store, error) {
	c.Shards = cmp.Or(c.Shards, DefaultShards)
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case c.Retention != 0 && c.Retention < MinRetention:
		return nil, fmt.Errorf("dynamostore: a retention of %s, want none or at least %s", c.Retention, MinRetention)
	case c.Client == nil:
		return nil, errors.New("dynamostore: a client is needed")
	case c.Table == "" || c.Index == "":
		return nil, errors.New("dynamostore: the names of the table and of its index are needed")
	case c.Shards < 1 || c.Shards > maxShards:
		return nil, fmt.Errorf("dynamostore: %d shards, want 1 to %d", c.Shards, maxShards)
	}
	return &Store{config: c, retryer: newRetryer(), shapes: newMemory[[]string](keptShapes), spills: newMemory[[]detail](keptSpills), seen: newMemory[seen](keptSeen)}, nil
}

// newRetryer tries again, as long as the context lasts, what failed by throttling, by a transaction on
// the same item, or on the other side.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxTries
		o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: map[string]struct{}{
			"TransactionConflictException":     {},
			"ReplicatedWriteConflictException": {},
		}})
		o.Backoff = retry.BackoffDelayerFunc(func(try int, _ error) (time.Duration, error) {
			limit := min(maxBackoff, firstBackoff<<min(try, 16))
			return time.Duration(rand.Int64N(int64(limit))), nil
		})
	})
}

// options are those of every request.
func (s *Store) options(o *dynamodb.Options) { o.Retryer = s.retryer }

// returnConsumed reports whether a request asks for its cost.
func (s *Store) returnConsumed() types.ReturnConsumedCapacity {
	if s.config.Consumed == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityIndexes
}

func (s *Store) consumed(operation string, capacity *types.ConsumedCapacity) {
	if s.config.Consumed != nil && capacity != nil {
		s.config.Consumed(operation, *capacity)
	}
}

// memory remembers at most limit values by their key.
type memory[V any] struct {
	mu    sync.Mutex
	limit int
	all   map[string]V
}

func newMemory[V any](limit int) *memory[V] { return &memory[V]{limit: limit, all: map[string]V{}} }

func (m *memory[V]) get(key string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.all[key]
	return v, ok
}

func (m *memory[V]) put(key string, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[key] = v
	for other := range m.all {
		if len(m.all) <= m.limit {
			return
		}
		if other != key {
			delete(m.all, other)
		}
	}
}

// Schema is the table as tests and local set-ups make it, and as template.yaml must.
func Schema(table, index string) *dynamodb.CreateTableInput {
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	return &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   []types.KeySchemaElement{key(attrPK, types.KeyTypeHash), key(attrSK, types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{
			attribute(attrPK, types.ScalarAttributeTypeS), attribute(attrSK, types.ScalarAttributeTypeS),
			attribute(attrShard, types.ScalarAttributeTypeN), attribute(attrCompleteBy, types.ScalarAttributeTypeN),
			attribute(attrAttention, types.ScalarAttributeTypeS),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(index),
			KeySchema:  []types.KeySchemaElement{key(attrShard, types.KeyTypeHash), key(attrCompleteBy, types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}, {
			IndexName:  aws.String(AttentionIndex),
			KeySchema:  []types.KeySchemaElement{key(attrShard, types.KeyTypeHash), key(attrAttention, types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	}
}

// ExpiryAttribute is what the table's TimeToLive must be set to; CreateTable, and so Schema, has no
// place for it. DynamoDB reads it as seconds.
const ExpiryAttribute = attrExpiresAt
