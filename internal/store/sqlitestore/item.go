package sqlitestore

import (
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// item is a row of jobs in memory. It is never changed: a write makes a new one.
type item struct {
	row int64
	// job is the whole job; ID, Rev, CompleteBy and ProcessState, which writes look at, where it was not in memory.
	job job.Job
	// held is what the row says that the job stands still for.
	held string
	// warned: the row says that it is warned of.
	warned bool
}

// stored returns the job as the conditions look at it: the zero job where there is none.
func (it *item) stored() job.Job {
	if it == nil {
		return job.Job{}
	}
	return it.job
}

const selectHead = `SELECT row, rev, complete_by, held_by, process_state, warned FROM jobs WHERE id = ?`

// readHead reads what the conditions of a write look at; nil when there is no such job.
func readHead(c *conn, id string) (*item, error) {
	row, err := c.one(selectHead, id)
	if err != nil || row == nil {
		return nil, err
	}
	head := job.Job{ID: id, Rev: asInt(row[1]), CompleteBy: asTime(row[2]), ProcessState: makegood.ProcessState(asText(row[4]))}
	return &item{row: asInt(row[0]), job: head, held: asText(row[3]), warned: row[5] != nil}, nil
}

// cache keeps the jobs that were written last, as they were answered: decoding a job costs more than a claim and a save
// together. Only the writer changes it, after the commit and the flush, so it shows only writes that have happened. A
// job that has finished is not kept.
type cache struct {
	mu    sync.RWMutex
	items map[string]*item
	// steps counts the steps of the items, the measure of their size; at most limit are kept.
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
		if it == nil || it.job.CompleteBy.IsZero() {
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
