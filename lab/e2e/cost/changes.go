package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// heard are the loads that are measured with somebody who hears of every change, too.
func heard() []load {
	names := []string{"1 step, unbatched", "5 steps, unbatched", "20 steps, unbatched", "5 steps, batched"}
	return slices.DeleteFunc(loads(), func(l load) bool { return !slices.Contains(names, l.name) })
}

// changesRow is what a job of a load costs more where somebody hears of every change.
type changesRow struct {
	Load        string  `json:"load"`
	WriteUnits  float64 `json:"writeUnits"`
	ReadUnits   float64 `json:"readUnits"`
	SQSRequests float64 `json:"sqsRequests"`
	Invocations float64 `json:"invocations"`
	BusEvents   float64 `json:"busEvents"`
}

// measureHeard measures those loads again, with somebody who hears.
func measureHeard(ctx context.Context, at endpoints, all []figures) ([]changesRow, error) {
	var more []changesRow
	for _, l := range heard() {
		off := all[slices.IndexFunc(all, func(f figures) bool { return f.load == l })]
		l.changes = true
		on, err := measure(ctx, at, l)
		if err != nil {
			return nil, err
		}
		more = append(more, heardMore(off, on))
	}
	return more, nil
}

func heardMore(off, on figures) changesRow {
	jobs, before, after := float64(on.load.jobs()), off.counted(), on.counted()
	return changesRow{
		Load: on.load.name, WriteUnits: (after.WriteUnits - before.WriteUnits) / jobs, ReadUnits: (after.ReadUnits - before.ReadUnits) / jobs,
		SQSRequests: float64(after.SQSRequests-before.SQSRequests) / jobs, Invocations: float64(after.Invocations-before.Invocations) / jobs,
		BusEvents: float64(on.runs) / jobs,
	}
}

// changesTable renders the rows as docs/cost.md shows them.
func changesTable(more []changesRow) string {
	var text strings.Builder
	text.WriteString("| hearing of every change, a job more | write units | read units | SQS requests | invocations | events of the bus |\n|---|---|---|---|---|---|\n")
	for _, r := range more {
		fmt.Fprintf(&text, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", r.Load, r.WriteUnits, r.ReadUnits, r.SQSRequests, r.Invocations, r.BusEvents)
	}
	return text.String()
}
