// Package memstore is a store in memory. Package store has the rules of every write, and this package calls them: so it
// is the contract in as few words as possible, with which storetest compares the adapters, and the store of the
// simulation.
//
// It keeps jobs as values, not as bytes, and loses all with its process.
package memstore

import (
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

var _ interface {
	store.Store
	store.Leases
	store.Lister
	store.Auditor
	store.Places
	store.Schedules
	store.Holds
	store.Gates
} = (*Store)(nil)

// Store is a store.Store, and whatever else a store may be.
type Store struct {
	// Rules are set before the first call, if they are to be others.
	Rules Rules
	// Wrote, if set, sees a job before and after each write of its item, one write at a time. It may read the store, and
	// must not write it.
	Wrote func(before, after job.Job)
	// WroteClaim, if set, sees a claim item before and after each write, in the same way.
	WroteClaim func(slot store.Slot, before, after store.ClaimItem)

	// writing is held through a write of a job or a claim, and what sees it; mu, too, while anything changes. So what
	// holds either may read jobs and claims.
	writing     sync.Mutex
	mu          sync.Mutex
	jobs        map[string]item
	claims      map[store.Slot]store.ClaimItem
	payloads    map[string]map[string][]byte // of each job, by key
	definitions map[string][]byte
	current     map[string]string
	leases      map[string]store.Lease
	places      map[string]string
	schedules   map[string]store.Scheduled
	gates       map[string]gate
	held        store.Held
}

// item is a job as it is stored, or one that cannot be decoded.
type item struct {
	job     job.Job
	damaged bool
}

// Rules say what a slot becomes, and which jobs must be left alone. Those of New are right; a test of the tests has
// wrong ones.
type Rules struct {
	Claimed   func(item store.ClaimItem, claim job.Claim, until time.Time) (store.ClaimItem, error)
	Extended  func(item store.ClaimItem, claim job.Claim, until time.Time) (store.ClaimItem, error)
	Closed    func(item store.ClaimItem, c store.Closing) (store.ClaimItem, job.Found)
	Looked    func(item store.ClaimItem, attempt int, until, now time.Time) job.Found
	Overruled func(item store.ClaimItem, attempt int, lie string, until time.Time) (store.ClaimItem, error)
	// Newer says why the release that uses the store must leave a job alone; nil: it may decide about it.
	Newer func(j job.Job) error
}

// New returns an empty store.
func New() *Store {
	return &Store{
		Rules: Rules{
			Claimed: store.Claimed, Extended: store.Extended, Closed: store.Closed, Looked: store.Looked, Overruled: store.Overruled,
			Newer: jobformat.Newer,
		},
		jobs: map[string]item{}, claims: map[store.Slot]store.ClaimItem{},
		payloads: map[string]map[string][]byte{}, definitions: map[string][]byte{}, current: map[string]string{},
		leases: map[string]store.Lease{}, places: map[string]string{}, schedules: map[string]store.Scheduled{}, gates: map[string]gate{},
	}
}
