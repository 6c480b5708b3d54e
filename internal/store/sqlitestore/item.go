package sqlitestore

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// item is a row of jobs in memory. It is never changed: a write makes a new one.
type item struct {
	row int64
	job makegood.Job
	// whole: job is all of it. Otherwise it is ID, Rev, CompleteBy, Open and Claims, which is what the
	// conditions look at, and nothing of the rest was decoded.
	whole bool
}

const selectHead = `SELECT row, rev, claims_rev, complete_by, open, claims FROM jobs WHERE id = ?`

// readHead reads what the conditions of a write look at; nil when there is no such job.
func readHead(c *conn, id string) (*item, error) {
	row := make([]driver.Value, 6)
	found, err := c.one(selectHead, row, id)
	if err != nil || !found {
		return nil, err
	}
	job := makegood.Job{ID: id, Rev: asInt(row[1]), CompleteBy: asTime(row[3])}
	if err := decodeHead(&job, asInt(row[2]), asBytes(row[4]), asBytes(row[5])); err != nil {
		return nil, err
	}
	return &item{row: asInt(row[0]), job: job}, nil
}

func decodeHead(job *makegood.Job, claimsRev int64, open, slots []byte) error {
	job.Claims.Rev = claimsRev
	if err := decodeMap(open, &job.Open); err != nil {
		return fmt.Errorf("%w: what may be claimed: %w", store.ErrDamaged, err)
	}
	if err := decodeMap(slots, &job.Claims.Slots); err != nil {
		return fmt.Errorf("%w: claims: %w", store.ErrDamaged, err)
	}
	return nil
}

// An empty map and no map are both null in the row, and nil when read.

func encodeMap[V any](m map[string]V) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

func decodeMap[V any](body []byte, m *map[string]V) error {
	if len(body) == 0 {
		return nil
	}
	return json.Unmarshal(body, m)
}

// cache keeps the jobs that were written last, as they were answered: decoding a job costs more than
// a claim and a save together. Only the writer changes it, after the commit and the flush, so what it
// shows has happened. A job that has finished is not kept.
type cache struct {
	mu    sync.RWMutex
	items map[string]*item
	// steps counts the steps of the items, the measure of what they weigh; at most limit are kept.
	steps, limit int
}

func newCache(limit int) *cache { return &cache{items: map[string]*item{}, limit: limit} }

func (c *cache) get(id string) *item {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.items[id]
}

// publish puts the items of a group in; nil takes one out.
func (c *cache) publish(items map[string]*item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, it := range items {
		c.drop(id)
		if it == nil || !it.whole || it.job.CompleteBy.IsZero() {
			continue
		}
		c.items[id] = it
		c.steps += weight(it)
	}
	for id := range c.items {
		if c.steps <= c.limit {
			return
		}
		// Whichever the map gives first: keeping an order of use would cost each read a write.
		c.drop(id)
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items, c.steps = map[string]*item{}, 0
}

func (c *cache) drop(id string) {
	if it, ok := c.items[id]; ok {
		c.steps -= weight(it)
		delete(c.items, id)
	}
}

func weight(it *item) int { return len(it.job.Steps) + 1 }
