package main

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/lab/costmeter"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// figures are what a load cost, the submission of its jobs apart from their steps.
type figures struct {
	load       load
	submission costmeter.Totals
	steps      costmeter.Totals
	// index are the write units among both that the index on CompleteBy takes; events are the invocations of the Scheduler.
	index  float64
	events int
	// kept is what the jobs say themselves.
	kept job.Spent
	// runs is how often changes of a job were published.
	runs int
}

// perStep are all costs of a job, divided by its steps.
type perStep struct {
	WriteUnits  float64 `json:"writeUnits"`
	ReadUnits   float64 `json:"readUnits"`
	SQSRequests float64 `json:"sqsRequests"`
	Invocations float64 `json:"invocations"`
	// Dollars are per million steps; so is Duration, which is among them and is not counted but assumed.
	Dollars  float64 `json:"dollarsPerMillionSteps"`
	Duration float64 `json:"durationDollarsPerMillionSteps"`
}

func (f figures) perStep() perStep {
	steps := float64(f.load.jobs() * f.load.steps)
	p := perStep{
		WriteUnits:  (f.submission.WriteUnits + f.steps.WriteUnits) / steps,
		ReadUnits:   (f.submission.ReadUnits + f.steps.ReadUnits) / steps,
		SQSRequests: float64(f.submission.SQSRequests+f.steps.SQSRequests) / steps,
		Invocations: float64(f.submission.Invocations+f.steps.Invocations) / steps,
	}
	p.Duration = p.Invocations * assumedSeconds * memoryGB * prices.GBSecond * 1e6
	p.Dollars = p.WriteUnits*prices.MillionWrites + p.ReadUnits*prices.MillionReads +
		p.SQSRequests*prices.MillionRequests + p.Invocations*prices.MillionInvocations + p.Duration
	return p
}

// keptTable renders what the jobs say themselves beside what was counted of the requests, for all jobs of a load.
func keptTable(all []figures) string {
	var text strings.Builder
	text.WriteString("| all of it, counted and as the jobs say | write units | read units | SQS requests | invocations |\n|---|---|---|---|---|\n")
	for _, f := range all {
		counted := f.counted()
		fmt.Fprintf(&text, "| %s | %.0f / %d | %.1f / %.1f | %.2f / %.2f | %.2f / %.2f |\n", f.load.name,
			counted.WriteUnits, f.kept.Writes, counted.ReadUnits, float64(f.kept.HalfReads)/2,
			float64(counted.SQSRequests), float64(f.kept.Requests)/job.SpentParts, float64(counted.Invocations), float64(f.kept.Invocations)/job.SpentParts)
	}
	return text.String()
}

// counted are all requests of a load, submissions included.
func (f figures) counted() costmeter.Totals {
	return costmeter.Totals{
		WriteUnits: f.submission.WriteUnits + f.steps.WriteUnits, ReadUnits: f.submission.ReadUnits + f.steps.ReadUnits,
		SQSRequests: f.submission.SQSRequests + f.steps.SQSRequests, Invocations: f.submission.Invocations + f.steps.Invocations,
	}
}

// row is a load in the JSON.
type row struct {
	Load    string `json:"load"`
	Steps   int    `json:"steps"`
	Batched bool   `json:"batched"`
	perStep
}

func rows(all []figures) []row {
	var list []row
	for _, f := range all {
		list = append(list, row{Load: f.load.name, Steps: f.load.steps, Batched: f.load.batched, perStep: f.perStep()})
	}
	return list
}

// table renders the figures as docs/cost.md shows them.
func table(all []figures) string {
	var text strings.Builder
	text.WriteString("| a step of a job of | write units | read units | SQS requests | invocations | $ per million steps |\n")
	text.WriteString("|---|---|---|---|---|---|\n")
	for _, r := range rows(all) {
		fmt.Fprintf(&text, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
			r.Load, r.WriteUnits, r.ReadUnits, r.SQSRequests, r.Invocations, r.Dollars)
	}
	for _, p := range peers() {
		fmt.Fprintf(&text, "| %s (list price) | | | | | %.2f |\n", p.name, p.dollars)
	}
	return text.String()
}

// legend says what the table rests on.
func legend() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Counted: units, requests and invocations, submission included. Assumed: an invocation is billed for %.0f ms\n", assumedSeconds*1000)
	fmt.Fprintf(&text, "at %.0f MB. Left out: logs, storage, what the steps themselves do. List prices of %s, looked up %s:\n", memoryGB*1024, prices.Region, prices.Date)
	for _, p := range list() {
		fmt.Fprintf(&text, "  %-40s %.10g $ a %s (%s)\n", p.what, p.dollars, p.per, p.source)
	}
	for _, p := range peers() {
		fmt.Fprintf(&text, "  %-40s %.2f $ a million steps: %s\n", p.name, p.dollars, p.from)
	}
	return text.String()
}
