package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Items leave the table by DynamoDB's TimeToLive, which is free, in no order and within days. A job at its end and told
// gets ExpiresAt in the save that ends it. Its payloads and details are items of their own, and a write to each would
// double their cost; so they are born with a time that is late enough for any job of less than keptAfter, and only the
// few jobs that live longer pay: their saves take the time off again, and the one that ends them sets it.
const (
	// partsLonger is how much longer than the retention a payload or detail is kept, counted from birth.
	partsLonger = 60 * 24 * time.Hour
	// keptAfter is the age at which a job's saves keep its parts from expiring. No wait of a job is longer
	// than partsLonger - keptAfter, so a save comes before any part of an unfinished job expires.
	keptAfter = 30 * 24 * time.Hour
	// MinRetention is the shortest retention: a part that is older than the retention and still there is of an earlier job
	// of the same id, or of a try that will not be made again.
	MinRetention = 24 * time.Hour
)

// expiry returns when a job may be deleted; zero: not yet, or never.
func (s *Store) expiry(j job.Job) time.Time {
	if s.config.Retention == 0 || !store.EndedAndTold(j) {
		return time.Time{}
	}
	return j.FinishedAt.Add(s.config.Retention)
}

// expiring adds to an item that is about to be born when it expires.
func (s *Store) expiring(part item) item {
	if s.config.Retention > 0 {
		part[attrExpiresAt] = number(s.config.Now().Add(s.config.Retention + partsLonger).Unix())
	}
	return part
}

// free is the condition under which a part may be written: its key is free, or taken by the part of an
// earlier job of this id, which is gone.
func (s *Store) free() (string, item) {
	if s.config.Retention == 0 {
		return "attribute_not_exists(PK)", nil
	}
	return "attribute_not_exists(PK) OR ExpiresAt < :stale", item{":stale": number(s.config.Now().Add(partsLonger).Unix())}
}

// freeID is the condition under which a job may be created: its id is free, or that of a job that has expired and that
// DynamoDB has not deleted yet.
func (s *Store) freeID() (string, item) {
	if s.config.Retention == 0 {
		return "attribute_not_exists(PK)", nil
	}
	return "attribute_not_exists(PK) OR ExpiresAt <= :now", item{":now": number(s.config.Now().Unix())}
}

// keepParts sees to it, before a save, that the parts of a job that has lived long expire neither before
// it nor without it. The zero time takes their time off. Crashing after it does no harm: the next save of
// the job does the same.
func (s *Store) keepParts(ctx context.Context, j job.Job, until time.Time) error {
	if s.config.Retention == 0 || s.config.Now().Sub(j.CreatedAt) < keptAfter && !s.startMoved(j, until) {
		return nil
	}
	parts, err := s.parts(ctx, j.ID)
	if err != nil {
		return fmt.Errorf("read the parts of job %s: %w", j.ID, err)
	}
	for _, part := range parts {
		if asInt(part[attrExpiresAt]) == expirySeconds(until) || s.dropped(part) {
			continue
		}
		if err := s.setExpiry(ctx, keyItem(asText(part[attrPK]), asText(part[attrSK])), until); err != nil {
			return fmt.Errorf("%s of job %s: %w", asText(part[attrSK]), j.ID, err)
		}
	}
	return nil
}

// waitsLong reports whether a job with a payload of its own starts so late that the payload would
// expire before it.
func (s *Store) waitsLong(j job.Job) bool {
	return s.config.Retention > 0 && j.Input.Ref != "" && j.StartAt.Sub(s.config.Now()) > keptAfter
}

// startMoved reports whether the start of a young job may have been moved so that the time of its payload is wrong: it
// starts too late for it now, or it has ended, and was to start so late before.
func (s *Store) startMoved(j job.Job, until time.Time) bool {
	return s.waitsLong(j) || !until.IsZero() && j.Input.Ref != "" && !j.StartAt.IsZero()
}

// expirySeconds writes a time as TimeToLive reads it, zero as 0, which no item has.
func expirySeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// parts returns the keys of all items of a job but the hot one, and when they expire.
func (s *Store) parts(ctx context.Context, job string) ([]item, error) {
	var all []item
	for it, err := range s.itemsOf(ctx, "LoadParts", &dynamodb.QueryInput{
		KeyConditionExpression: aws.String("PK = :job"), ProjectionExpression: aws.String("PK, SK, ExpiresAt"),
		ExpressionAttributeValues: item{":job": text(jobPrefix + job)},
	}) {
		if err != nil {
			return nil, err
		}
		if asText(it[attrSK]) != sortJob {
			all = append(all, it)
		}
	}
	return all, nil
}

// setExpiry changes when a part expires. One that has expired meanwhile is not made anew.
func (s *Store) setExpiry(ctx context.Context, key item, until time.Time) error {
	u := newUpdate()
	if until.IsZero() {
		u.remove(u.attr(attrExpiresAt))
	} else {
		u.set(u.attr(attrExpiresAt), "until", number(until.Unix()))
	}
	u.when("attribute_exists(" + u.attr(attrPK) + ")")
	_, err := s.update(ctx, "KeepPart", key, u)
	if errors.Is(err, errCondition) {
		return nil
	}
	return err
}
