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
	lines, err := write(generate(*n, *seed))
	if err != nil {
		return err
	}
	if *file == "" {
		_, err = stdout.Write(lines)
		return err
	}
	return os.WriteFile(*file, lines, 0o644)
}

func write(orders []order) ([]byte, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, o := range orders {
		if err := encoder.Encode(o); err != nil {
			return nil, fmt.Errorf("write order %s: %w", o.ID, err)
		}
	}
	return lines.Bytes(), nil
}

// generate returns n orders, in the order of their ids and days.
func generate(n int, seed uint64) []order {
	random := rand.New(rand.NewPCG(seed, 0))
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
			ID: strconv.Itoa(id), Customer: customer, Date: day.Format(time.DateOnly), Total: total(random),
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
