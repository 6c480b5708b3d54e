// Command orders writes made-up orders, a line of JSON each, for the examples to run on. They have
// the shape of a real shop's: regular customers and one-time ones, no orders on Saturdays, many
// small totals and a few very large ones. The same seed gives the same orders.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

//go:generate go run . -n 300 -seed 1 -o orders.jsonl

// maxOrders keeps the ids at six digits.
const maxOrders = 50000

// order is a line of the file.
type order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Date     string  `json:"date"`
	Total    float64 `json:"total"`
	Lines    []line  `json:"lines"`
}

// line is an article of an order.
type line struct {
	Sku    string `json:"sku"`
	Pieces int    `json:"pieces"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	n := flags.Int("n", 300, "how many orders")
	seed := flags.Uint64("seed", 1, "the same `number` gives the same orders")
	file := flags.String("o", "", "`file` to write; default: standard output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *n < 1 || *n > maxOrders {
		return fmt.Errorf("-n %d: want 1 to %d", *n, maxOrders)
	}
	text, err := write(generate(*n, *seed))
	if err != nil {
		return err
	}
	if *file == "" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(*file, text, 0o644)
}

func write(orders []order) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, o := range orders {
		if err := encoder.Encode(o); err != nil {
			return nil, fmt.Errorf("write order %s: %w", o.ID, err)
		}
	}
	return text.Bytes(), nil
}

// generate returns n orders, in the order of their ids and days.
func generate(n int, seed uint64) []order {
	random, articles := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	regulars := make([]string, 0, n)
	orders := make([]order, 0, n)
	id := 700000
	day := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	left := perDay(random)
	for range n {
		if left == 0 {
			day, left = nextDay(day), perDay(random)
		}
		left--
		id += gap(random)
		customer := pickCustomer(random, regulars)
		regulars = append(regulars, customer)
		orders = append(orders, order{
			ID: strconv.Itoa(id), Customer: customer, Date: day.Format(time.DateOnly), Total: total(random), Lines: lines(articles),
		})
	}
	return orders
}

// perDay returns how many orders a day has.
func perDay(random *rand.Rand) int { return 25 + random.IntN(50) }

func nextDay(day time.Time) time.Time {
	day = day.AddDate(0, 0, 1)
	if day.Weekday() == time.Saturday {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// gap is 1 for most orders; numbers are missing where an invoice was cancelled.
func gap(random *rand.Rand) int {
	step := 1
	for random.Float64() < 0.3 && step < 8 {
		step++
	}
	return step
}

// pickCustomer takes one who has ordered before in two cases of five, the more likely the more
// often they did.
func pickCustomer(random *rand.Rand, before []string) string {
	if len(before) > 0 && random.Float64() < 0.4 {
		return before[random.IntN(len(before))]
	}
	return strconv.Itoa(12000 + random.IntN(7000))
}

// total is log-normal around 280, with a wider spread for the few wholesale orders.
func total(random *rand.Rand) float64 {
	spread := 0.85
	if random.Float64() < 0.05 {
		spread = 1.8
	}
	return math.Round(28000*math.Exp(spread*random.NormFloat64())) / 100
}

// maxLines is how many lines an order has at most.
const maxLines = 3

// lines are one to maxLines articles, of a few hundred that the shop has.
func lines(random *rand.Rand) []line {
	all := make([]line, 1+random.IntN(maxLines))
	for i := range all {
		all[i] = line{Sku: fmt.Sprintf("sku-%03d", 1+random.IntN(400)), Pieces: 1 + random.IntN(3)}
	}
	return all
}
