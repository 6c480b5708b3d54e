// Package works has the work by which the engine is measured, as benchmarks of Go, and the tests that hold the
// counts of it. It uses package engine alone, as a program of a user would, with every answer on the disk. make
// bench runs it; no test asserts a time.
package works

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/engine"
)

// lane is how a step goes: through the queue of its agent, in the process that decides, or in a chain of such steps.
type lane struct{ name, fields string }

var lanes = []lane{{"queued", ""}, {"inline", ", inline: true"}, {"chains", ", inline: true, exclusive: false"}}

// W1, W7 and W8: many jobs at once, of three steps each. An operation is a job: submitted, done and waited for.
func BenchmarkManyJobs(b *testing.B) {
	for _, l := range lanes {
		b.Run(l.name, func(b *testing.B) {
			eng := open(b, b.TempDir(), row(3, l), idle)
			measure(b, 3, func() { throughAll(b, eng, b.N, 0) })
		})
	}
}

// W2, and the same for W7 and W8: one job after the other, of ten steps each.
func BenchmarkTenInARow(b *testing.B) {
	for _, l := range lanes {
		b.Run(l.name, func(b *testing.B) {
			eng := open(b, b.TempDir(), row(10, l), idle)
			measure(b, 10, func() {
				for i := range b.N {
					waitDone(b, eng, submitNumber(b, eng, i))
				}
			})
		})
	}
}

// W4: one job after the other, each with a step, a hundred branches after it, and a step after all of them.
func BenchmarkBranches(b *testing.B) {
	const branches = 100
	for _, l := range lanes[:2] {
		b.Run(l.name, func(b *testing.B) {
			eng := open(b, b.TempDir(), fan(branches, l), idle)
			measure(b, branches+2, func() {
				for i := range b.N {
					waitDone(b, eng, submitNumber(b, eng, i))
				}
			})
		})
	}
}

// row is a workflow of so many steps in a row that do nothing.
func row(steps int, l lane) string {
	text := "name: row\nsteps:\n"
	for i := range steps {
		text += fmt.Sprintf("  - {name: step%02d, agent: idle%s}\n", i, l.fields)
	}
	return text
}

// fan is a workflow with so many branches side by side.
func fan(branches int, l lane) string {
	text, all := "name: row\nsteps:\n  - {name: first, agent: idle"+l.fields+"}\n", ""
	for i := range branches {
		text += fmt.Sprintf("  - {name: branch%02d, agent: idle, needs: [first]%s}\n", i, l.fields)
		all += fmt.Sprintf("branch%02d, ", i)
	}
	return text + fmt.Sprintf("  - {name: join, agent: idle, needs: [%s]%s}\n", all[:len(all)-2], l.fields)
}

// idle does nothing, so all cost of a step is the engine's.
func idle(context.Context, makegood.Task) (json.RawMessage, error) {
	return json.RawMessage(`"ok"`), nil
}

// throughAll submits n jobs, numbered from first on, by 64 submitters, and waits for each.
func throughAll(tb testing.TB, eng *engine.Engine, n, first int) {
	var waiters sync.WaitGroup
	sideBySide(n, func(i int) {
		id := submitNumber(tb, eng, first+i)
		waiters.Go(func() { waitDone(tb, eng, id) })
	})
	waiters.Wait()
}

// sideBySide calls do for each number below n, 64 at a time.
func sideBySide(n int, do func(i int)) {
	numbers := make(chan int)
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	callers.Wait()
}

func submitNumber(tb testing.TB, eng *engine.Engine, i int) string {
	return submit(tb, eng, "row", number(i), `{"sku":"a-17","quantity":3}`)
}

// number is the id of a job by its number.
func number(i int) string { return fmt.Sprintf("job-%08d", i) }

func submit(tb testing.TB, eng *engine.Engine, workflow, id, input string) string {
	if _, err := eng.Submit(context.Background(), makegood.Submission{Workflow: workflow, ID: id, Input: json.RawMessage(input)}); err != nil {
		tb.Error(err)
	}
	return id
}

func waitDone(tb testing.TB, eng *engine.Engine, id string) {
	if j, err := eng.Wait(context.Background(), id); err != nil || j.ProcessState != makegood.JobProcessed {
		tb.Errorf("job %s: got %s, %v, want %s", id, j.ProcessState, err, makegood.JobProcessed)
	}
}
