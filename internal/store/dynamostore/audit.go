package dynamostore

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var (
	_ store.Auditor = (*Store)(nil)
	_ store.Places  = (*Store)(nil)
)

const (
	sortPlace = "place"
	attrPlace = "Place"
)

// AuditedAttributes are all that an audit asks of an item; the Supervisor's role allows these and no others.
func AuditedAttributes() []string {
	return []string{attrPK, attrSK, attrProcessState, attrCompleteBy, attrShard, attrExpiresAt}
}

// AuditPage reads a page of the table; see store.Auditor. It is one request, eventually consistent: each item is as
// some write left it, which is all that an audit needs, for half the price. It pays for all items that it passes over,
// payloads included, at most a megabyte. A job that has ended is noted as told only where jobs expire.
func (s *Store) AuditPage(ctx context.Context, page string, limit int) ([]store.Audited, string, error) {
	from, err := readAudited(page)
	if err != nil {
		return nil, "", fmt.Errorf("audit: %w", err)
	}
	out, err := s.config.Client.Scan(ctx, s.auditing(from, limit), s.options)
	if err != nil {
		return nil, "", fmt.Errorf("audit: %w", err)
	}
	s.consumed("AuditPage", out.ConsumedCapacity)
	jobs := make([]store.Audited, 0, len(out.Items))
	for _, it := range out.Items {
		if _, err := ofAJob(it); err != nil {
			return nil, "", fmt.Errorf("audit: %w", err)
		}
		switch {
		case isHolds(it):
		case isSchedule(it):
			jobs = append(jobs, store.Audited{Schedule: asText(it[attrSK]), CompleteBy: asTime(it[attrCompleteBy]), Indexed: true})
		default:
			jobs = append(jobs, s.audited(it))
		}
	}
	if len(out.LastEvaluatedKey) == 0 {
		return jobs, "", nil
	}
	at := cursor{job: asText(out.LastEvaluatedKey[attrPK]), sort: asText(out.LastEvaluatedKey[attrSK])}
	return jobs, base64.RawURLEncoding.EncodeToString([]byte(at.String())), nil
}

// readAudited reads the cursor of an audit.
func readAudited(page string) (cursor, error) {
	place, err := base64.RawURLEncoding.DecodeString(page)
	if err != nil {
		return cursor{}, fmt.Errorf("there is no page %.40q: %w", page, store.ErrNotFound)
	}
	return readPlace(string(place))
}

// auditing is the request for a page: the jobs, and the entries of the index.
func (s *Store) auditing(from cursor, limit int) *dynamodb.ScanInput {
	u := newUpdate()
	u.when("(" + u.attr(attrSK) + " = " + u.value("job", text(sortJob)) + " OR attribute_exists(" + u.attr(attrShard) + "))")
	var shown []string
	for _, name := range AuditedAttributes() {
		shown = append(shown, u.attr(name))
	}
	var start item
	if from.job != "" {
		start = keyItem(from.job, from.sort)
	}
	return &dynamodb.ScanInput{
		TableName: &s.config.Table, Limit: aws.Int32(int32(min(max(1, limit), scanItems))), ExclusiveStartKey: start,
		Select: types.SelectSpecificAttributes, ProjectionExpression: aws.String(strings.Join(shown, ", ")),
		FilterExpression: aws.String(u.condition()), ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
		ReturnConsumedCapacity: s.returnConsumed(),
	}
}

// audited returns what an audit sees of an item. The index holds items that have both of its keys, and a sweep goes
// through the shards that it knows.
func (s *Store) audited(it item) store.Audited {
	shard, sharded := it[attrShard]
	_, keyed := it[attrCompleteBy]
	_, expires := it[attrExpiresAt]
	a := store.Audited{
		Job: jobOf(it), ProcessState: makegood.ProcessState(asText(it[attrProcessState])), CompleteBy: asTime(it[attrCompleteBy]),
		Indexed: sharded && keyed && s.isShard(asInt(shard)),
	}
	a.Told = a.ProcessState.Finished() && expires
	a.NoJob = asText(it[attrSK]) != sortJob || !strings.HasPrefix(asText(it[attrPK]), jobPrefix)
	return a
}

// alertPrefix is before the name of an alert's item. It is not that of leases: a sweeper may not silence an alert.
const alertPrefix = "alert#"

// places are kept in items that have partition keys with a prefix.
type places struct {
	store  *Store
	prefix string
}

// Alerts keeps the times of alerts, apart from the places of the Supervisor. It does not read those kept by a release
// of before: such an alert is sent twice.
func (s *Store) Alerts() store.Places { return places{s, alertPrefix} }

// Place returns the place kept under a name; see store.Places.
func (s *Store) Place(ctx context.Context, name string) (string, error) {
	return places{s, leasePrefix}.Place(ctx, name)
}

// KeepPlace keeps a place under a name; see store.Places.
func (s *Store) KeepPlace(ctx context.Context, name, seen, place string) error {
	return places{s, leasePrefix}.KeepPlace(ctx, name, seen, place)
}

// Place returns the place kept under a name; see store.Places.
func (p places) Place(ctx context.Context, name string) (string, error) {
	s := p.store
	out, err := s.config.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.config.Table, Key: keyItem(p.prefix+name, sortPlace), ReturnConsumedCapacity: s.returnConsumed(),
	}, s.options)
	if err != nil {
		return "", fmt.Errorf("read place %s: %w", name, err)
	}
	s.consumed("Place", out.ConsumedCapacity)
	return asText(out.Item[attrPlace]), nil
}

// KeepPlace keeps a place under a name; see store.Places. One that the SDK tries again finds its own, and succeeds.
func (p places) KeepPlace(ctx context.Context, name, seen, place string) error {
	u := newUpdate()
	at := u.attr(attrPlace)
	u.set(at, "place", text(place))
	if seen == "" {
		u.when("(attribute_not_exists(" + at + ") OR " + at + " = " + u.value("seen", text(seen)) + ")")
	} else {
		u.when(at + " = " + u.value("seen", text(seen)))
	}
	old, err := p.store.update(ctx, "KeepPlace", keyItem(p.prefix+name, sortPlace), u)
	return store.About(orConflict(err, len(old) > 0 && asText(old[attrPlace]) == place), "keep place %s", name)
}
