//go:build aws

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/table.md and the counts of the calculator anew")

func at(t *testing.T) endpoints {
	return endpoints{dynamoDB: standin.DynamoDB(t).Endpoint, sqs: standin.SQS(t).Endpoint}
}

// ofLoads are the figures of loads that were measured, by their names, for the tests that follow.
var ofLoads = map[string]figures{}

func measured(t *testing.T, l load) figures {
	t.Helper()
	if f, is := ofLoads[l.name]; is && f.load == l {
		return f
	}
	f, err := measure(t.Context(), at(t), l)
	if err != nil {
		t.Fatal(err)
	}
	ofLoads[l.name] = f
	return f
}

// The budget of the reference job, exactly: of ten jobs of five steps each. A job's birth is a unit, and one of the index;
// a claim and a save are a unit each; the last save takes the job out of the index. The first task is sent alone.
func TestTheReferenceJobCostsWhatItsBudgetAllows(t *testing.T) {
	f := measured(t, load{name: "reference", steps: 5, batched: true, output: inlineOutput})
	const jobs, steps = limits.MaxBatch, 5 * limits.MaxBatch
	submission := costmeter.Totals{WriteUnits: 2 * jobs, SQSRequests: jobs}
	if f.submission != submission {
		t.Errorf("submission: got %+v, want %+v", f.submission, submission)
	}
	// Of each ten messages, a request each to send, receive and delete; but the first tasks were sent before.
	want := costmeter.Totals{WriteUnits: 2*steps + jobs, ReadUnits: steps, SQSRequests: 6*steps/10 - 1, Invocations: 2 * steps / 10}
	if f.steps != want {
		t.Errorf("steps: got %+v, want %+v", f.steps, want)
	}
}

// Ten jobs that are submitted by message: one request has the ten submissions, and one their ten first tasks. Submitted
// by ten callers, whose functions do not know of each other, they are ten requests, and what the door takes.
func TestSubmissionsByMessageAreARequestForTen(t *testing.T) {
	f := measured(t, load{name: "by message", steps: 5, batched: true, output: inlineOutput, byMessage: true})
	const jobs, steps = limits.MaxBatch, 5 * limits.MaxBatch
	if want := (costmeter.Totals{SQSRequests: 1}); f.submission != want {
		t.Errorf("submission: got %+v, want %+v", f.submission, want)
	}
	// Births are among the steps here, and each reads which definition is current. Beside the requests of the
	// steps, the submissions are received and deleted, and their tasks are sent.
	want := costmeter.Totals{WriteUnits: 2*jobs + 2*steps + jobs, ReadUnits: steps + jobs, SQSRequests: 6*steps/10 - 1 + 3, Invocations: 2*steps/10 + 1}
	if f.steps != want {
		t.Errorf("steps: got %+v, want %+v", f.steps, want)
	}
}

// A job that somebody listens to is told of three times (Pending, Processing, Processed), each of which is noted by a
// write. None of them moves the key, but the last, which takes the job out of the index.
func TestAJobThatSomebodyListensToPaysAWriteForEachAnnouncement(t *testing.T) {
	f := measured(t, load{name: "listened", steps: 5, output: inlineOutput, listened: true})
	submission := costmeter.Totals{WriteUnits: 2 + 1, ReadUnits: 1, SQSRequests: 2}
	steps := costmeter.Totals{WriteUnits: 2*5 + 2 + 1, ReadUnits: 5 + 2, SQSRequests: 6*5 - 1 + 2, Invocations: 2 * 5}
	if f.submission != submission || f.steps != steps {
		t.Errorf("got %+v and %+v, want %+v and %+v", f.submission, f.steps, submission, steps)
	}
}

// Saves rewrite the whole item, which stays within a unit, since the details of steps that are over lie beside it, and
// a job does not name all of these; claims write none of it. While a job named all of its details, 200 steps took 565
// write units, and 100 with outputs of 256 bytes 328.
func TestLongJobsKeepToTheirUnits(t *testing.T) {
	for l, want := range map[load][2]float64{
		{steps: 20, output: inlineOutput}:              {44, 30},
		{steps: 60, output: inlineOutput}:              {130, 111},
		{steps: 100, output: inlineOutput}:             {219, 213},
		{steps: limits.MaxSteps, output: inlineOutput}: {447, 594},
		{steps: 100, output: limits.MaxInlineBytes}:    {258, 522},
	} {
		l.name = fmt.Sprintf("long %d %d", l.steps, l.output)
		f := measured(t, l)
		if got := [2]float64{f.counted().WriteUnits, f.counted().ReadUnits}; got != want {
			t.Errorf("%d steps, outputs of %d bytes: got %v write and read units, want %v", l.steps, l.output, got, want)
		}
	}
}

// An item of a map takes the save of its end and a claim, and its share of the births and details of parts. While the
// facts about the 100 items under way stood in the part itself, which each save writes, it took 3.19 write units alone.
// 100,000 items may take half a dollar in full batches.
func TestAnItemOfAMapCostsWhatItsBudgetAllows(t *testing.T) {
	for name, most := range map[string]perStep{
		"a map of 1,000 items, unbatched":             {WriteUnits: 2.4, SQSRequests: 5.2, Invocations: 2.1, Dollars: 4.7},
		"a map of 1,000 items, batched":               {WriteUnits: 1.4, SQSRequests: 0.7, Invocations: 0.3, Dollars: 0.50 * 1e6 / 100_000},
		"a map of 1,000 items, ten a task, unbatched": {WriteUnits: 0.6, SQSRequests: 0.6, Invocations: 0.3, Dollars: 1.2},
		"a map of 1,000 items, ten a task, batched":   {WriteUnits: 0.6, SQSRequests: 0.2, Invocations: 0.1, Dollars: 1},
	} {
		l := loads()[slices.IndexFunc(loads(), func(l load) bool { return l.name == name })]
		f := measured(t, l)
		got := f.perStep()
		if got.WriteUnits > most.WriteUnits || got.SQSRequests > most.SQSRequests || got.Invocations > most.Invocations || got.Dollars > most.Dollars {
			t.Errorf("%s: an item takes %+v, want at most %+v", name, got, most)
		}
		agree(t, f.counted(), f.kept)
	}
}

// The table of docs/cost.md, and the dollars of the budget.
func TestTheTableIsTheOneThatIsShown(t *testing.T) {
	limits := map[string]float64{"5 steps, batched": 2.50, "5 steps, batched, outputs of 1 KB": 4.00, "5 steps, unbatched": 5.30, "5 inline steps, unbatched": 1.50, "5 steps in a chain, unbatched": 0.90}
	var all []figures
	for _, l := range loads() {
		f := measured(t, l)
		all = append(all, f)
		if limit, ok := limits[l.name]; ok && f.perStep().Dollars > limit {
			t.Errorf("%s: got %.2f $ per million steps, the limit is %.2f", l.name, f.perStep().Dollars, limit)
		}
		delete(limits, l.name)
	}
	if len(limits) > 0 {
		t.Errorf("no load was measured for %v", limits)
	}
	const file = "testdata/table.md"
	got := table(all)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another table. Got:\n%s\nwant:\n%s", file, got, want)
	}
}

// The calculator reckons from what is counted here.
func TestTheCalculatorReckonsFromTheseCounts(t *testing.T) {
	var all []figures
	for _, l := range sizedLoads() {
		all = append(all, measured(t, l))
	}
	text, err := countsFile(all)
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../../internal/sizing/counts.go"
	if *rewrite {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, "internal/sizing/counts.go"); string(text) != want {
		t.Errorf("%s has other counts: make cost COUNTS=1 > internal/sizing/counts.go. Got:\n%s", file, text)
	}
}

// What the meter works out is what DynamoDB Local reports, for each request of whole jobs.
func TestTheMeterSaysWhatTheServerReports(t *testing.T) {
	for _, l := range []load{
		{name: "small", steps: 5, output: inlineOutput},
		{name: "outputs of their own", steps: 5, output: 5 << 10},
		{name: "spilling", steps: 60, output: inlineOutput},
	} {
		t.Run(l.name, func(t *testing.T) {
			w, err := open(t.Context(), at(t), l, true)
			if err != nil {
				t.Fatal(err)
			}
			submission, steps, err := w.run(t.Context(), "check")
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, e := range append(submission, steps...) {
				if e.Doubt != "" {
					t.Errorf("%s %s: %s", e.Service, e.Operation, e.Doubt)
				}
				if e.Reported != nil {
					compared++
				}
				if d := e.Differs(); d != "" {
					t.Error(d)
				}
			}
			if least := 1 + 3*l.steps; compared < least {
				t.Errorf("%d requests were compared, want at least %d", compared, least)
			}
		})
	}
}

// A wait of a year costs three write units beside the job without it: the save that begins it moves the job's key, which is
// two, and the one that ends it is a write.
func TestAWaitOfAYearCostsThreeWriteUnits(t *testing.T) {
	w, err := open(t.Context(), at(t), load{name: "waiting", steps: 2, output: inlineOutput}, false)
	if err != nil {
		t.Fatal(err)
	}
	// The first job of a process also pays for what is read once.
	if _, err := w.runWaiting(t.Context(), "wait-000002", false); err != nil {
		t.Fatal(err)
	}
	without, err := w.runWaiting(t.Context(), "wait-000000", false)
	if err != nil {
		t.Fatal(err)
	}
	with, err := w.runWaiting(t.Context(), "wait-000001", true)
	if err != nil {
		t.Fatal(err)
	}
	extra := [4]float64{
		with.WriteUnits - without.WriteUnits, with.ReadUnits - without.ReadUnits,
		float64(with.SQSRequests - without.SQSRequests), float64(with.Invocations - without.Invocations),
	}
	// The message that the sweep sends is not counted here, and is counted by the calculator.
	if want := [4]float64{sizing.WaitWrites, sizing.WaitReads, sizing.WaitRequests - 1, sizing.WaitEvents}; extra != want || sizing.WaitWrites != 3 {
		t.Errorf("got %v write units, read units, requests and invocations more (%+v and %+v), want %v, and three write units", extra, with, without, want)
	}
}
