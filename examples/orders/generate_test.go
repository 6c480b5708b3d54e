package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

func TestTheCommittedFileIsWhatTheGeneratorGives(t *testing.T) {
	committed, err := os.ReadFile("orders.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "orders.jsonl")
	if err := run([]string{"-n", "300", "-seed", "1", "-o", fresh}, nil); err != nil {
		t.Fatal(err)
	}
	generated, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, generated) {
		t.Error("orders.jsonl differs from what the generator gives: run go generate ./examples/orders")
	}
}

func TestTheSeedDecidesTheOrders(t *testing.T) {
	if one, again := generate(50, 7), generate(50, 7); !reflect.DeepEqual(one, again) {
		t.Errorf("seed 7 gives %v and then %v", one[0], again[0])
	}
	if one, other := generate(50, 7), generate(50, 8); reflect.DeepEqual(one, other) {
		t.Error("seeds 7 and 8 give the same orders")
	}
}

func TestOrdersHaveTheShapeOfAShops(t *testing.T) {
	orders := generate(5000, 3)
	six, five := regexp.MustCompile(`^[0-9]{6}$`), regexp.MustCompile(`^[0-9]{5}$`)
	customers, sizes := map[string]int{}, map[int]int{}
	var totals []float64
	for i, o := range orders {
		day, err := time.Parse(time.DateOnly, o.Date)
		if !six.MatchString(o.ID) || !five.MatchString(o.Customer) || err != nil || o.Total <= 0 {
			t.Fatalf("order %d: got %+v", i, o)
		}
		if day.Weekday() == time.Saturday {
			t.Errorf("order %s is of a Saturday", o.ID)
		}
		if i > 0 && (o.ID <= orders[i-1].ID || o.Date < orders[i-1].Date) {
			t.Errorf("order %s of %s stands behind %s of %s", o.ID, o.Date, orders[i-1].ID, orders[i-1].Date)
		}
		customers[o.Customer]++
		sizes[len(o.Lines)]++
		totals = append(totals, o.Total)
	}
	slices.Sort(totals)
	for _, q := range []struct {
		perMille int
		from, to float64
	}{{50, 50, 100}, {500, 250, 320}, {950, 900, 1500}, {990, 2000, 5000}} {
		if got := totals[len(totals)*q.perMille/1000]; got < q.from || got > q.to {
			t.Errorf("total at %d per mille: got %.2f, want %.0f to %.0f", q.perMille, got, q.from, q.to)
		}
	}
	if len(sizes) != maxLines || sizes[0] != 0 {
		t.Errorf("orders by their number of lines: got %v, want some of each from 1 to %d", sizes, maxLines)
	}
	if len(customers) < 1500 || len(customers) > 3500 {
		t.Errorf("customers: got %d of 5000 orders, want some who come back", len(customers))
	}
}

func TestTheNumberOfOrdersIsLimited(t *testing.T) {
	for _, n := range []string{"0", "-1", "50001"} {
		if err := run([]string{"-n", n}, &bytes.Buffer{}); err == nil {
			t.Errorf("-n %s: got no error", n)
		}
	}
	var out bytes.Buffer
	if err := run([]string{"-n", "2"}, &out); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 2 {
		t.Errorf("-n 2: got %q, %v, want two lines", out.String(), err)
	}
}
