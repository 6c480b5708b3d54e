package domain_test

import (
	"math"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

func TestPricesThatCannotBeAreRefused(t *testing.T) {
	if err := domain.CheckPrices(makegood.ListPrices()); err != nil {
		t.Errorf("our own: %v", err)
	}
	for name, change := range map[string]func(*makegood.Prices){
		"region":         func(p *makegood.Prices) { p.Region = "" },
		"date":           func(p *makegood.Prices) { p.Date = "" },
		"millionWrites":  func(p *makegood.Prices) { p.MillionWrites = -1 },
		"gbSecond is Na": func(p *makegood.Prices) { p.GBSecond = math.NaN() },
	} {
		p := makegood.ListPrices()
		change(&p)
		if err := domain.CheckPrices(p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want it refused by name", name, err)
		}
	}
}
