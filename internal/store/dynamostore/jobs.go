package dynamostore

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// Create stores a new job; see store.Jobs.
func (s *Store) Create(ctx context.Context, j job.Job) error {
	return store.About(s.create(ctx, j), "create job %s", j.ID)
}

func (s *Store) create(ctx context.Context, j job.Job) error {
	nonce := newNonce()
	it := s.birthItem(j, nonce)
	p := s.packBirth(ctx, j, sizeOf(it)+len(attrData))
	it[attrData] = blob(p.data)
	if err := s.putParts(ctx, j.ID, p); err != nil {
		return err
	}
	if s.waitsLong(j) {
		// No save will come before its input expires.
		if err := s.setExpiry(ctx, partKey(j.ID, j.Input.Ref), time.Time{}); err != nil {
			return fmt.Errorf("keep the input: %w", err)
		}
	}
	condition, values := s.freeID()
	old, err := s.putUncounted(ctx, "Create", it, condition, values)
	if errors.Is(err, errCondition) {
		if bytes.Equal(asBytes(old[attrBornBy]), nonce) {
			return nil
		}
		return store.ErrExists
	}
	return err
}

// packBirth packs a new job, with what its birth costs if that is counted.
func (s *Store) packBirth(ctx context.Context, j job.Job, beside int) packed {
	account := spend.On(ctx)
	if account == nil {
		return pack(j, nil, beside)
	}
	p, counted := packCounted(j, nil, beside, func(p packed) int64 {
		return s.partWrites(j.ID, p) + birthWrites(j, p.bytes)
	})
	account.Store(counted.Spent)
	return p
}

// birthItem is the hot item of a new job, but for its data.
func (s *Store) birthItem(j job.Job, nonce []byte) item {
	j.CompleteBy = domain.Instant(j.CompleteBy)
	it := besideItem(j, 1)
	it[attrBornBy] = blob(nonce)
	if j.LockedBy == "" {
		delete(it, attrLockedBy)
	}
	if !j.CompleteBy.IsZero() {
		it[attrCompleteBy], it[attrShard] = instant(j.CompleteBy), number(s.shard(j))
	}
	return it
}

// newNonce returns eight random bytes, by which a write knows itself.
func newNonce() []byte {
	nonce := make([]byte, 8)
	_, _ = crand.Read(nonce) // never fails, says its documentation
	return nonce
}

// putParts writes the parts that data refers to, before data, so that each reference has its part. The cost is in the
// data, if it is counted.
func (s *Store) putParts(ctx context.Context, job string, p packed) error {
	if p.names != nil {
		if err := s.putShape(spend.Without(ctx), *p.names); err != nil {
			return err
		}
	}
	for _, d := range p.details {
		if d.body == nil {
			continue
		}
		if err := s.putPart(spend.Without(ctx), "PutDetail", detailItem(job, d)); err != nil {
			return fmt.Errorf("put details of steps that are over: %w", err)
		}
	}
	return nil
}

func detailItem(job string, d detail) item {
	it := partKey(job, d.key)
	it[attrData] = blob(d.body)
	return it
}

// Load reads a job; see store.Jobs.
func (s *Store) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := s.load(ctx, id)
	return j, store.About(err, "load job %s", id)
}

// load returns a job of a later release together with store.ErrNewer, as far as it is known.
func (s *Store) load(ctx context.Context, id string) (job.Job, error) {
	it, err := s.get(ctx, "Load", hotKey(id))
	if err != nil {
		return job.Job{}, err
	}
	s.see(ctx, id, it)
	stored, err := jobformat.Decode(asBytes(it[attrData]))
	if err == nil {
		err = s.nameSteps(ctx, &stored)
	}
	if err == nil {
		err = s.fillDetails(ctx, id, &stored)
	}
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return job.Job{}, err
	}
	beside(&stored.Job, it)
	if err == nil {
		err = jobformat.Newer(stored.Job)
	}
	return stored.Job, err
}

// nameSteps gives a job the names of its steps, if they are not in its data.
func (s *Store) nameSteps(ctx context.Context, stored *jobformat.Stored) error {
	if stored.NamesAt == nil {
		return nil
	}
	names, err := s.shape(ctx, shapePrefix+hashText(stored.NamesAt))
	if err != nil {
		return damagedUnlessThere(err)
	}
	return stored.Name(names)
}

// damagedUnlessThere: a job without its parts is damaged; it must not look as if it did not exist.
func damagedUnlessThere(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrDamaged, errors.New("the names of its steps are gone"))
	}
	return err
}

// fillDetails gives a job the details that are not in its data, and remembers where they are.
func (s *Store) fillDetails(ctx context.Context, id string, stored *jobformat.Stored) error {
	if len(stored.DetailsAt) == 0 && len(stored.Detailed) == 0 {
		return nil
	}
	bodies, err := s.details(ctx, id)
	if err != nil {
		return err
	}
	details, err := fill(stored, bodies)
	if err == nil {
		s.spills.put(id, details)
	}
	return err
}

// details reads all details of a job, those that it does not refer to any more, too.
func (s *Store) details(ctx context.Context, job string) (map[string][]byte, error) {
	bodies := map[string][]byte{}
	query := partsQuery(job, "begins_with(SK, :detail)", item{":detail": text(detailPrefix)})
	for it, err := range s.itemsOf(ctx, "LoadDetails", query) {
		if err != nil {
			return nil, fmt.Errorf("read details: %w", err)
		}
		bodies[asText(it[attrSK])] = asBytes(it[attrData])
	}
	return bodies, nil
}

// itemsOf reads the items that a query finds in the table, as they are now. An error ends it. op names the reads where
// they are counted.
func (s *Store) itemsOf(ctx context.Context, op string, query *dynamodb.QueryInput) iter.Seq2[item, error] {
	query.TableName, query.ConsistentRead, query.ReturnConsumedCapacity = &s.config.Table, aws.Bool(true), s.returnConsumed()
	return func(yield func(item, error) bool) {
		for pages := dynamodb.NewQueryPaginator(s.config.Client, query); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx, s.options)
			if err != nil {
				yield(nil, err)
				return
			}
			s.consumed(op, page.ConsumedCapacity)
			hasRead(ctx, page.Items...)
			for _, it := range page.Items {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
}

// Save stores a changed job; see store.Jobs.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	return store.About(s.save(ctx, change), "save job %s", change.Job.ID)
}

func (s *Store) save(ctx context.Context, change store.Change) error {
	change.Job.CompleteBy, change.Seen = domain.Instant(change.Job.CompleteBy), domain.Instant(change.Seen)
	j := change.Job
	if err := jobformat.Newer(j); err != nil {
		return err
	}
	stored, _ := s.spills.get(j.ID)
	p := s.packSave(ctx, change, stored)
	if p.bytes > maxHot {
		return fmt.Errorf("%w: %d bytes, the limit is %d", store.ErrTooLarge, p.bytes, maxHot)
	}
	if err := s.putParts(ctx, j.ID, p); err != nil {
		return err
	}
	if err := s.keepParts(ctx, j, s.expiry(j)); err != nil {
		return err
	}
	old, err := s.updateGiving(ctx, "Save", hotKey(j.ID), s.saving(change, p), types.ReturnValueNone)
	switch {
	case errors.Is(err, errCondition) && savedBefore(old, j, p.data):
		return nil
	case errors.Is(err, errCondition):
		return store.ErrConflict
	}
	return err
}

// packSave packs a job as it is to be, with what its save costs if that is counted.
func (s *Store) packSave(ctx context.Context, change store.Change, stored []detail) packed {
	j, beside, account := change.Job, s.besideData(change.Job), spend.On(ctx)
	if account == nil || !j.Spent.Counted() {
		return pack(j, stored, beside)
	}
	p, counted := packCounted(j, stored, beside, func(p packed) int64 {
		return s.partWrites(j.ID, p) + s.saveWrites(change, p.bytes)
	})
	account.Store(counted.Spent)
	return p
}

// besideData is what the item will weigh but for its data.
func (s *Store) besideData(j job.Job) int {
	it := besideItem(j, j.Rev+1)
	if !j.CompleteBy.IsZero() {
		it[attrCompleteBy], it[attrShard] = instant(j.CompleteBy), number(s.shard(j))
	}
	if end := s.expiry(j); !end.IsZero() {
		it[attrExpiresAt] = number(end.Unix())
	}
	return sizeOf(it) + len(attrData)
}

// savedBefore reports whether the stored item is the result of this very save: its answer was lost.
func savedBefore(old item, j job.Job, data []byte) bool {
	return store.SavedBefore(readBeside(old), j) && bytes.Equal(asBytes(old[attrData]), data)
}

// saving is the update that a save makes. Its condition is Rev alone: every writer of the item raises it.
func (s *Store) saving(change store.Change, p packed) *update {
	u, j := newUpdate(), change.Job
	u.setPacked(p)
	u.set(u.attr(attrRev), "next", number(j.Rev+1))
	u.set(u.attr(attrProcessState), "state", text(string(j.ProcessState)))
	u.set(u.attr(attrLockedBy), "lockedBy", text(j.LockedBy))
	u.set(u.attr(attrFailureCount), "failures", number(int64(j.FailureCount)))
	u.set(u.attr(attrWorkflow), "workflow", text(j.Workflow))
	if waits := attention(j); waits != "" {
		u.set(u.attr(attrAttention), "attention", text(waits))
	} else {
		u.remove(u.attr(attrAttention))
	}
	if end := s.expiry(j); !end.IsZero() {
		u.set(u.attr(attrExpiresAt), "expiresAt", number(end.Unix()))
	} else {
		u.remove(u.attr(attrExpiresAt))
	}
	for _, name := range []string{attrBornBy, attrParked, attrParkedBy} {
		u.remove(u.attr(name))
	}
	// The index of jobs that wait for a person knows no shards of beginnings, and so the shard is set again, which is no
	// write of the index where it stays.
	if change.MovesKey() || attention(j) != "" && !j.CompleteBy.IsZero() {
		s.move(u, j)
	}
	u.when(u.attr(attrRev) + " = " + u.value("rev", number(j.Rev)))
	return u
}

// setPacked sets what a packed job has in its item.
func (u *update) setPacked(p packed) {
	u.set(u.attr(attrData), "data", blob(p.data))
	if p.needs > 0 {
		u.set(u.attr(attrNeeds), "needs", number(int64(p.needs)))
	} else {
		u.remove(u.attr(attrNeeds))
	}
}

// move moves the key of a job in the index to its CompleteBy; a zero CompleteBy takes it out.
func (s *Store) move(u *update, j job.Job) {
	if j.CompleteBy.IsZero() {
		u.remove(u.attr(attrCompleteBy))
		u.remove(u.attr(attrShard))
		return
	}
	u.set(u.attr(attrCompleteBy), "completeBy", instant(j.CompleteBy))
	u.set(u.attr(attrShard), "shard", number(s.shard(j)))
}

// Park puts a job in front of a person; see store.Jobs.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	seen, completeBy = domain.Instant(seen), domain.Instant(completeBy)
	nonce := newNonce()
	parking := s.parking(id, seen, completeBy, reason, nonce)
	old, err := s.update(ctx, "Park", hotKey(id), parking)
	if err != nil && !errors.Is(err, errCondition) && isFull(err) {
		if err = s.makeRoom(ctx, id); err == nil {
			old, err = s.update(ctx, "Park", hotKey(id), parking)
		}
	}
	switch {
	case errors.Is(err, errCondition) && len(old) == 0:
		err = store.ErrNotFound
	case errors.Is(err, errCondition) && bytes.Equal(asBytes(old[attrParkedBy]), nonce):
		err = nil
	case errors.Is(err, errCondition) && asInt(old[attrNeeds]) > jobformat.Level:
		err = store.ErrNewer
	case errors.Is(err, errCondition):
		err = store.ErrConflict
	}
	return store.About(err, "park job %s", id)
}

// parking is the update that parks a job, unless it is one of a later release: the caller may have seen it before that
// release had written it. An item that has lost its Rev is parked, too.
func (s *Store) parking(id string, seen, completeBy time.Time, reason string, nonce []byte) *update {
	u := newUpdate()
	u.set(u.attr(attrProcessState), "error", text(string(makegood.JobError)))
	u.set(u.attr(attrParked), "reason", text(reason))
	u.set(u.attr(attrParkedBy), "nonce", blob(nonce))
	u.set(u.attr(attrAttention), "attention", text(attentionOf(waitsInError, parkedBirth, id)))
	u.raise(u.attr(attrRev))
	s.move(u, job.Job{ID: id, CompleteBy: completeBy})
	u.when("attribute_exists(" + u.attr(attrPK) + ")")
	needs := u.attr(attrNeeds)
	u.when("(attribute_not_exists(" + needs + ") OR " + needs + " <= " + u.value("level", number(jobformat.Level)) + ")")
	if seen.IsZero() {
		u.when("attribute_not_exists(" + u.attr(attrCompleteBy) + ")")
	} else {
		u.when(u.attr(attrCompleteBy) + " = " + u.value("seen", instant(seen)))
	}
	return u
}

// errCondition: the condition of a write did not hold.
var errCondition = errors.New("condition failed")

// asCondition recognizes a failed condition, and returns the item as it stands.
func asCondition(err error) (old item, condition error) {
	if failed, is := errors.AsType[*types.ConditionalCheckFailedException](err); is {
		return failed.Item, errCondition
	}
	return nil, err
}
