package makegood_test

import (
	"math"
	"testing"

	"github.com/makegood-dev/makegood"
)

func TestWhatWasSpentIsPricedByTheUnit(t *testing.T) {
	prices := makegood.Prices{Region: "r", Date: "d", MillionWrites: 1, MillionReads: 10, MillionRequests: 100, MillionInvocations: 1000, GBSecond: 0.01}
	spent := makegood.Spent{WriteUnits: 2, ReadUnits: 1.5, Requests: 0.5, Invocations: 0.1, GBSeconds: 0.0125}
	want := (2*1+1.5*10+0.5*100+0.1*1000)/1e6 + 0.0125*0.01
	if got := prices.Dollars(spent.Plus(spent)); math.Abs(got-2*want) > 1e-12 {
		t.Errorf("got %v $ of both, want %v", got, 2*want)
	}
}
