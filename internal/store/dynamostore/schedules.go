package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

var (
	_ store.Schedules  = (*Store)(nil)
	_ store.Beginnings = (*Store)(nil)
)

// schedulesPK is the partition in which all schedules lie, so that they can be listed; a schedule's name is its sort
// key. There are few, and each fires seldom.
const schedulesPK = "schedules#"

// attrWrittenBy is a nonce of each write of a schedule, or of the holds, by which it knows its own.
const attrWrittenBy = "WrittenBy"

func scheduleKey(name string) item { return keyItem(schedulesPK, name) }

// PutSchedule stores a schedule; see store.Schedules. One that the SDK tries again finds its own nonce, and succeeds.
func (s *Store) PutSchedule(ctx context.Context, schedule store.Scheduled) error {
	next, err := schedule.PutOver(store.Scheduled{Rev: schedule.Rev})
	if err == nil {
		err = s.putSchedule(ctx, schedule.Rev, next)
	}
	return store.About(err, "put schedule %s", schedule.Name)
}

// putSchedule writes next in the place of the schedule with the revision seen.
func (s *Store) putSchedule(ctx context.Context, seen int64, next store.Scheduled) error {
	it := scheduleKey(next.Name)
	it[attrRev], it[attrData] = number(next.Rev), blob(store.EncodeSchedule(next))
	if !next.Key.IsZero() {
		it[attrCompleteBy], it[attrShard] = instant(next.Key), number(s.beginsIn(next.Name))
	}
	return s.putRevised(ctx, "PutSchedule", it, seen)
}

// putRevised writes an item in the place of the one with the revision seen; zero: there is none.
func (s *Store) putRevised(ctx context.Context, operation string, it item, seen int64) error {
	nonce := newNonce()
	it[attrWrittenBy] = blob(nonce)
	condition, values := "attribute_not_exists(PK)", item(nil)
	if seen > 0 {
		condition, values = "Rev = :seen", item{":seen": number(seen)}
	}
	old, err := s.put(ctx, operation, it, condition, values)
	return orConflict(err, bytes.Equal(asBytes(old[attrWrittenBy]), nonce))
}

// Schedule reads a schedule; see store.Schedules.
func (s *Store) Schedule(ctx context.Context, name string) (store.Scheduled, error) {
	it, err := s.get(ctx, "Schedule", scheduleKey(name))
	if err != nil {
		return store.Scheduled{}, fmt.Errorf("schedule %s: %w", name, err)
	}
	schedule, err := readSchedule(it)
	return schedule, store.About(err, "schedule %s", name)
}

// readSchedule reads an item. A damaged schedule has only the attributes beside its data.
func readSchedule(it item) (store.Scheduled, error) {
	schedule, err := store.DecodeSchedule(asBytes(it[attrData]))
	schedule.Name, schedule.Rev, schedule.Key = asText(it[attrSK]), asInt(it[attrRev]), asTime(it[attrCompleteBy])
	return schedule, err
}

// RemoveSchedule removes a schedule; see store.Schedules. One that the SDK tries again may find that there is none any
// more, and says so.
func (s *Store) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	old, err := s.remove(ctx, "RemoveSchedule", scheduleKey(name), "Rev = :rev", item{":rev": number(rev)})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCondition) && len(old) == 0:
		err = store.ErrNotFound
	case errors.Is(err, errCondition):
		err = store.ErrConflict
	}
	return fmt.Errorf("remove schedule %s: %w", name, err)
}

// ListSchedules returns all schedules; see store.Schedules.
func (s *Store) ListSchedules(ctx context.Context) ([]store.Scheduled, error) {
	var all []store.Scheduled
	for it, err := range s.itemsOf(ctx, "ListSchedules", &dynamodb.QueryInput{
		KeyConditionExpression: aws.String("PK = :schedules"), ExpressionAttributeValues: item{":schedules": text(schedulesPK)},
	}) {
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		schedule, err := readSchedule(it)
		if errors.Is(err, store.ErrDamaged) {
			schedule.Problem = err.Error()
		}
		all = append(all, schedule)
	}
	return all, nil
}
