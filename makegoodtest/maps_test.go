package makegoodtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// basket is an order whose lines are reserved one by one. Where tea is false there is none, which is tolerated. Where pay
// is false the payment fails for good, so the reserved lines are given back.
func basket(lines []string, tea *bool, pay bool, lost int) Case {
	return Case{
		YAML: []byte(`
name: order
steps:
  - name: reserve
    map: {over: "${ .input }", concurrency: 2, tolerate: {items: 1}}
    agent: shop
    undo: {action: release}
  - {name: pay, agent: shop, with: "${ [.steps.reserve.output[] | select(. != null)] }", undo: none}
`),
		Input: lines,
		Services: func() Services {
			shelf := NewFake("shelf").LoseAnswers("reserve", lost)
			return Services{
				Ledger: shelf.Ledger,
				Agents: []agent.Handler{agent.New("shop",
					agent.Do("reserve", func(ctx context.Context, line string) (string, error) {
						if line == "tea" && !*tea {
							return "", agent.Final(agent.NotApplied(errors.New("no tea")))
						}
						return line, shelf.Do(ctx, "reserve", agent.TaskOf(ctx).Key)
					}).Undo("release", func(ctx context.Context, _ string, _ *string) error {
						return shelf.Undo(ctx, "release", agent.TaskOf(ctx).Undo.ForwardKey)
					}),
					agent.Do("pay", func(_ context.Context, lines []string) (int, error) {
						if !pay {
							return 0, agent.Final(agent.NotApplied(errors.New("no money")))
						}
						return len(lines), nil
					}),
				)},
				Check: func(job Job) error {
					want, end := 0, makegood.JobUndone
					if pay {
						want, end = len(lines), makegood.JobProcessed
					}
					if pay && !*tea {
						want -= strings.Count(strings.Join(lines, " "), "tea")
					}
					if n := shelf.Stands("reserve"); n != want || job.ProcessState != end {
						return fmt.Errorf("the job is %s, and %d lines are reserved, want %s and %d", job.ProcessState, n, end, want)
					}
					return nil
				},
			}
		},
	}
}

func TestEachItemOfAMapHasItsAttempt(t *testing.T) {
	job := Run(t, basket([]string{"ham", "tea", "jam"}, new(bool), true, 0))
	keys := map[string]bool{}
	for _, a := range job.Attempts {
		if a.Action == "reserve" {
			keys[a.Key] = true
		}
	}
	if len(keys) != 3 || string(job.Output("reserve")) != `["ham",null,"jam"]` || string(job.Output("pay")) != "2" {
		t.Errorf("%d keys, %s, %s", len(keys), job.Output("reserve"), job.Output("pay"))
	}
	if len(job.Children) != 1 || job.Children[0].Steps[1].Error == nil || job.Children[0].Steps[1].Error.Message != "no tea" {
		t.Errorf("the job of the items: %+v", job.Children)
	}
}

// The items of a map, alone and in batches, are done and undone once each wherever the engine dies, and on bad days.
func TestAMapKeepsItsPromisesWhereverTheEngineDies(t *testing.T) {
	for _, pay := range []bool{true, false} {
		for _, fields := range []string{"concurrency: 2", "batch: 2, concurrency: 2", "batch: 2, concurrency: 2, tolerate: {items: 1}}\n    inline: true # "} {
			with := func(c Case) Case {
				c.YAML = bytes.Replace(c.YAML, []byte("concurrency: 2"), []byte(fields), 1)
				return c
			}
			CrashEverywhere(t, with(basket([]string{"ham", "tea"}, new(bool), pay, 1)))
			Chaos(t, with(basket([]string{"ham", "tea", "jam"}, new(bool), pay, 1)), 10)
		}
	}
}

// The failed item is done again when that is asked for, under its key.
func TestAFailedItemIsRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tea := false
		job := Start(t, basket([]string{"ham", "tea"}, &tea, true, 0))
		job.Wait()
		tea = true
		if err := job.Request(makegood.VerbRedrive); err != nil {
			t.Fatal(err)
		}
		end := job.Wait()
		var keys []string
		for _, a := range end.Attempts {
			if string(a.Input) == `"tea"` {
				keys = append(keys, a.Key)
			}
		}
		if string(end.Output("reserve")) != `["ham","tea"]` || len(keys) != 2 || keys[0] != keys[1] {
			t.Errorf("%s, with the keys %v", end.Output("reserve"), keys)
		}
	})
}
