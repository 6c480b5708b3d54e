//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/makegood-dev/makegood/agent"
)

// workflows are an order of three steps, of which every fifth is refused and undone, a notice of one step, and a report
// of ten branches.
var workflows = fstest.MapFS{
	"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: reserve, agent: stock, undo: {action: release}}
  - {name: charge, agent: bank, undo: {action: refund}, retry: {attempts: 2, backoff: 1s}}
  - {name: tell, agent: post}
`)},
	"notice.yaml": {Data: []byte("name: notice\nsteps: [{name: tell, agent: post}]")},
	"report.yaml": {Data: []byte(report())},
}

func report() string {
	text := "name: report\nsteps:\n"
	for i := range 10 {
		text += fmt.Sprintf("  - {name: part_%d, agent: stock, action: count, needs: []}\n", i)
	}
	return text
}

// request is the input of every job.
type request struct {
	Cents int `json:"cents"`
	// Refused: the bank says no.
	Refused bool `json:"refused"`
}

func agents() []agent.Handler {
	return []agent.Handler{
		agent.New("stock", agent.Do("reserve", reserve).Undo("release", release), agent.Do("count", count)),
		agent.New("bank", agent.Do("charge", charge).Undo("refund", release)),
		agent.New("post", agent.Do("tell", tell)),
	}
}

func reserve(context.Context, request) (string, error) { return "shelf 3", nil }

func release(context.Context, request, *string) error { return nil }

func count(context.Context, request) (int, error) { return 7, nil }

func charge(_ context.Context, r request) (string, error) {
	if r.Refused {
		return "", agent.NotApplied(errors.New("the card was refused"))
	}
	return "paid", nil
}

func tell(context.Context, request) (string, error) { return "told", nil }
