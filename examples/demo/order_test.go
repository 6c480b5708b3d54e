package main

import (
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/makegoodtest"
	"github.com/makegood-dev/makegood/workflows/order"
)

// twoLines is an order of two lines at a shop that ships it, or refuses to.
func twoLines(ships bool) makegoodtest.Case {
	return makegoodtest.Case{
		YAML: orderYAML,
		Input: map[string]any{"id": "o-1", "customer": "c-1", "total": 9.5, "lines": []map[string]any{
			{"sku": "sku-7", "pieces": 1}, {"sku": "sku-7", "pieces": 1},
		}},
		Services: func() makegoodtest.Services {
			shop := makegoodtest.NewFake("shop")
			end, lines, others := makegood.JobProcessed, 2, 1
			if !ships {
				shop.Refuse("ship")
				end, lines, others = makegood.JobUndone, 0, 0
			}
			return makegoodtest.Services{
				Agents: order.Agents("http://shop", makegoodtest.Client(shop)),
				HTTP:   shop,
				Ledger: shop.Ledger,
				Check: func(job makegoodtest.Job) error {
					if n := shop.Stands("reserve"); n != lines || job.ProcessState != end {
						return fmt.Errorf("the order is %s, and %d lines are reserved, want %s and %d", job.ProcessState, n, end, lines)
					}
					if charged, shipped := shop.Stands("charge"), shop.Stands("ship"); charged != others || shipped != others {
						return fmt.Errorf("the order is %s, charged %d times and shipped %d times", job.ProcessState, charged, shipped)
					}
					return nil
				},
			}
		},
	}
}

// Each line of an order is reserved by itself, also two lines of the same article; all are released where the order
// cannot be shipped.
func TestEachLineOfAnOrderIsReservedByItself(t *testing.T) {
	for ships, want := range map[bool]int{true: 4, false: 7} { // attempts: two lines, charge, ship; and the undo of all but ship
		if job := makegoodtest.Run(t, twoLines(ships)); len(job.Attempts) != want {
			t.Errorf("ships %t: got %s, want %d attempts", ships, job.Order(), want)
		}
	}
}

func TestEachLineOfAnOrderIsReservedOnceWhereverTheEngineDies(t *testing.T) {
	if testing.Short() {
		t.Skip("it tries every call: make whole")
	}
	for _, ships := range []bool{true, false} {
		makegoodtest.CrashEverywhere(t, twoLines(ships))
	}
}
