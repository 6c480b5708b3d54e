package prices_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// What make cost prices by, and what jobs are priced by, is one list.
func TestThePricesAreThoseOfTheProduct(t *testing.T) {
	want := makegood.Prices{
		Region: prices.Region, Date: prices.Date, MillionWrites: prices.MillionWrites, MillionReads: prices.MillionReads,
		MillionRequests: prices.MillionRequests, MillionInvocations: prices.MillionInvocations, GBSecond: prices.GBSecond,
	}
	if got := makegood.ListPrices(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if sizing.GBOfLogs != prices.GBOfLogs || sizing.GBMonth != prices.GBMonth || sizing.GBMonthOfBackup != prices.GBMonthOfBackup {
		t.Error("the calculator prices logs or storage by other prices")
	}
}
