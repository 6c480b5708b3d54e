package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Leases = (*Store)(nil)

const (
	// leasePrefix is before a lease's name in its partition key; no job's id holds a #.
	leasePrefix = "lease#"
	sortLease   = "lease"
	attrHolder  = "Holder"
	attrUntil   = "Until"
)

// TakeLease takes or extends a lease; see store.Leases. One that the SDK tries again finds its own
// holder, and succeeds.
func (s *Store) TakeLease(ctx context.Context, name, holder string, now, until time.Time) error {
	u := newUpdate()
	u.set(u.attr(attrHolder), "holder", text(holder))
	u.set(u.attr(attrUntil), "until", instant(until))
	// A value that is no time, or one that is too far, was not put there by a sweeper.
	held := u.attr(attrUntil)
	u.when("(attribute_not_exists(PK) OR " + u.attr(attrHolder) + " = :holder OR " + held + " <= " + u.value("now", instant(now)) + " OR " +
		held + " > " + u.value("far", instant(now.Add(store.MaxLease))) + " OR NOT attribute_type(" + held + ", " + u.value("number", text("N")) + "))")
	_, err := s.config.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.config.Table, Key: keyItem(leasePrefix+name, sortLease),
		UpdateExpression: aws.String(u.expression()), ConditionExpression: aws.String(u.condition()),
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
	}, s.options)
	if _, err = asCondition(err); errors.Is(err, errCondition) {
		err = store.ErrTaken
	}
	return store.About(err, "take lease %s", name)
}

// ReleaseLease gives a lease up; see store.Leases.
func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	_, err := s.config.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.config.Table, Key: keyItem(leasePrefix+name, sortLease),
		ConditionExpression:       aws.String("#Holder = :holder"),
		ExpressionAttributeNames:  map[string]string{"#Holder": attrHolder},
		ExpressionAttributeValues: item{":holder": text(holder)},
	}, s.options)
	if _, err = asCondition(err); errors.Is(err, errCondition) {
		return nil
	}
	return store.About(err, "release lease %s", name)
}
