package main

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// load is a kind of job, and how its messages come.
type load struct {
	name    string
	steps   int
	batched bool
	output  int // bytes of each step's output
	// given is how many bytes the input has; zero: as many as a job holds inline.
	given int
	// listened: the submitter is told of every change.
	listened bool
	// changes: somebody hears of every change. forgetful: each event comes to a process that does not know what others have
	// published, as it may on Lambda.
	changes, forgetful bool
	// slow: each step outlasts the first look after it.
	slow bool
	// inline: the Scheduler's function runs the agent itself, and jobs are submitted by message.
	inline bool
	// byMessage: jobs are submitted by message, though their steps go by the queue.
	byMessage bool
	// chained: those steps run in a chain.
	chained bool
	// mapped: the steps are the items of a map, which is the one step of the one job.
	mapped bool
	// together is how many items of a map are one task; 0: one.
	together int
	// limit, if set, is that of the agent; ten jobs come at once then.
	limit job.Limit
	// timeout, if set, is that of each step.
	timeout makegood.Duration
}

// The reference load of the budgets: inputs of 256 bytes and outputs of 32, which stand in the job itself.
const (
	inlineOutput = 32
	largeOutput  = 1 << 10
)

// loads are those of the table, those of a quiet stack first: that is what most begin with.
func loads() []load {
	return []load{
		{name: "1 step, unbatched", steps: 1, output: inlineOutput},
		{name: "5 steps, unbatched", steps: 5, output: inlineOutput},
		{name: "20 steps, unbatched", steps: 20, output: inlineOutput},
		{name: "5 slow steps, unbatched", steps: 5, output: inlineOutput, slow: true},
		{name: "1 inline step, unbatched", steps: 1, output: inlineOutput, inline: true},
		{name: "5 inline steps, unbatched", steps: 5, output: inlineOutput, inline: true},
		{name: "20 inline steps, unbatched", steps: 20, output: inlineOutput, inline: true},
		{name: "5 steps in a chain, unbatched", steps: 5, output: inlineOutput, inline: true, chained: true},
		{name: "20 steps in a chain, unbatched", steps: 20, output: inlineOutput, inline: true, chained: true},
		{name: "1 step, batched", steps: 1, batched: true, output: inlineOutput},
		{name: "5 steps, batched", steps: 5, batched: true, output: inlineOutput},
		{name: "20 steps, batched", steps: 20, batched: true, output: inlineOutput},
		{name: "5 steps, batched, outputs of 1 KB", steps: 5, batched: true, output: largeOutput},
		{name: "5 slow steps, batched", steps: 5, batched: true, output: inlineOutput, slow: true},
		{name: "5 inline steps, batched", steps: 5, batched: true, output: inlineOutput, inline: true},
		{name: "5 steps in a chain, batched", steps: 5, batched: true, output: inlineOutput, inline: true, chained: true},
		{name: "a map of 1,000 items, unbatched", steps: 1000, output: inlineOutput, mapped: true},
		{name: "a map of 1,000 items, batched", steps: 1000, batched: true, output: inlineOutput, mapped: true},
		{name: "a map of 1,000 items, ten a task, unbatched", steps: 1000, output: inlineOutput, mapped: true, together: 10},
		{name: "a map of 1,000 items, ten a task, batched", steps: 1000, batched: true, output: inlineOutput, mapped: true, together: 10},
	}
}

// way is how the steps of a load get to their agent, as the calculator names it.
func (l load) way() string {
	switch {
	case l.chained:
		return sizing.Chain
	case l.inline:
		return sizing.Inline
	default:
		return sizing.Queue
	}
}

// shards is how many shards the index has: one where a sweep is to tell of the whole batch in one request.
func (l load) shards() int {
	if l.slow {
		return 1
	}
	return dynamostore.DefaultShards
}

// hops is how many times tasks and replies go through the queues.
func (l load) hops() int {
	if l.inline || l.mapped || l.limited() {
		return 0
	}
	return l.steps
}

// batch is how many records there are in an invocation.
func (l load) batch() int {
	if l.batched {
		return limits.MaxBatch
	}
	return 1
}

// jobs is how many jobs are run: one batch. Unbatched jobs do not know of each other. A map fills its batches itself.
func (l load) jobs() int {
	switch {
	case l.mapped:
		return 1
	case l.limited():
		return limits.MaxBatch
	}
	return l.batch()
}

// agentName is the agent of all steps, so that there is one tasks queue.
const agentName = "shop"

// workflow is the jobs' workflow file: steps in sequence, with names of eight bytes, and nothing but the defaults.
func (l load) workflow() []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "name: reference\nsteps:\n")
	timeout := ""
	switch {
	case l.timeout > 0:
		timeout = ", timeout: " + l.timeout.String()
	case l.slow:
		timeout = ", timeout: " + slowTimeout.String()
	}
	if l.inline {
		timeout += ", inline: true"
	}
	if l.chained {
		timeout += ", exclusive: false"
	}
	if l.mapped {
		fmt.Fprintf(&text, "  - {name: step_001, agent: %s, action: work, map: {over: \"${ [range(%d)] }\", batch: %d}}\n", agentName, l.steps, max(1, l.together))
		return []byte(text.String())
	}
	for i := range l.steps {
		fmt.Fprintf(&text, "  - {name: step_%03d, agent: %s, action: work%s}\n", i+1, agentName, timeout)
	}
	return []byte(text.String())
}

// input is a JSON value of the load's size, another one for each of ten jobs.
func (l load) input(i int) []byte {
	return fmt.Appendf(nil, `{"text":"%d%s"}`, i%10, strings.Repeat("x", max(limits.MaxInlineBytes, l.given)-12))
}

// answer is what every step gives: a JSON text of the load's size.
func (l load) answer() string { return strings.Repeat("y", l.output-2) }

// limited reports whether the agent has a limit.
func (l load) limited() bool { return l.limit != job.Limit{} }
