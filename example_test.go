package makegood_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
)

// What is submitted, and what is refused at the door.
func ExampleSubmission() {
	s := makegood.Submission{Workflow: "trip", ID: "t 1", Input: json.RawMessage(`{"to":"Oslo"}`), StartAt: time.Now().Add(time.Hour)}
	fmt.Println(makegood.CheckJobID(s.ID))
	// Output:
	// "t 1" cannot be a job's id: want [A-Za-z0-9._:-]{1,128}, and neither . nor .. alone
}

// Durations are written as in a workflow file.
func ExampleParseDuration() {
	d, err := makegood.ParseDuration("1h30m")
	fmt.Println(d, err)
	_, err = makegood.ParseDuration("90")
	fmt.Println(err)
	// Output:
	// 1h30m0s <nil>
	// "90" is not a duration: want a number and a unit, such as 500ms, 30s or 1h30m
}

// A job goes on by itself until it is finished, or waits for a person.
func ExampleJob_AtEnd() {
	for _, s := range []makegood.ProcessState{makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndone} {
		fmt.Println(s, s.Finished(), makegood.Job{ProcessState: s}.AtEnd())
	}
	// Output:
	// Processing false false
	// Processed true true
	// Error false true
	// Undone true true
}

// What a job of a stack has cost is in its JSON, in units; prices are a list that you may bring.
func ExamplePrices_Dollars() {
	spent := makegood.Spent{WriteUnits: 13, ReadUnits: 5, Requests: 30, Invocations: 10, GBSeconds: 0.125}
	fmt.Printf("%.6f $\n", makegood.ListPrices().Dollars(spent))
	// Output: 0.000024 $
}
