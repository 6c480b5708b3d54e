//go:build aws

package dynamostore

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

// A thief of the Supervisor's role may write whatever it likes into the items of leases.
func TestALeaseWhoseTimeIsNoneHoldsNobodyOff(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	now := time.Now()
	for name, until := range map[string]item{
		"text": {attrUntil: text("9999999999999")}, "in a thousand years": {attrUntil: instant(now.AddDate(1000, 0, 0))}, "nothing": {},
	} {
		it := keyItem(leasePrefix+name, sortLease)
		it[attrHolder] = text("thief")
		for attribute, value := range until {
			it[attribute] = value
		}
		_, err := tab.config.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tab.name, Item: it})
		must(t, "put", err)
		must(t, "take a lease that is "+name, s.TakeLease(t.Context(), name, "me", now, now.Add(time.Minute)))
		if err := s.TakeLease(t.Context(), name, "another", now, now.Add(time.Minute)); !errors.Is(err, store.ErrTaken) {
			t.Errorf("%s, then another: got %v, want %v", name, err, store.ErrTaken)
		}
	}
}

// Whoever may sweep may write under lease#, and may not silence an alert.
func TestWhatWasToldIsKeptWhereNoLeaseIs(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	must(t, "keep", s.Alerts().KeepPlace(t.Context(), "alert-1", "", "told"))
	must(t, "keep a place of the Supervisor's", s.KeepPlace(t.Context(), "alert-1", "", "never tell"))
	if got, err := s.Alerts().Place(t.Context(), "alert-1"); err != nil || got != "told" {
		t.Errorf("got %q, %v, want what was told", got, err)
	}
	it, err := s.get(t.Context(), "Get", keyItem("alert#alert-1", sortPlace))
	if err != nil || asText(it[attrPlace]) != "told" {
		t.Errorf("got the item %v, %v, want it under alert#", it, err)
	}
}
