// Package changes hands on what has changed of jobs, to whoever hears of every change. It holds the port, a Relay that keeps who
// is slow away from who moves jobs, and a Hub for those who look on live. It decides nothing: which changes there are the core
// says, and jobs remember them until somebody has heard.
package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
)

// ErrLater is what a Publisher answers that has taken a run in, and says later what became of it.
var ErrLater = errors.New("it is said later whether they were published")

// Publisher hands on runs of changes.
type Publisher interface {
	// Publish hands on runs, each of another job. It returns an error for each: nil means that the run is where it will not be
	// lost; ErrLater that this is said later. Runs of one job are handed over in the order of their numbers, and one may begin
	// with what another had.
	Publish(ctx context.Context, runs []Run) []error
}

// Run is changes of one job that are published together. It has one at least.
type Run struct {
	makegood.Changes
	// Confirm: the job is at rest, and is to hear at once that they were published.
	Confirm bool
}

// UpTo is the number of the last of them.
func (r Run) UpTo() int { return r.Changes.Changes[len(r.Changes.Changes)-1].Number }

// Encode writes the run as it is published: makegood.Changes as JSON.
func (r Run) Encode() (string, error) {
	body, err := json.Marshal(r.Changes)
	if err != nil {
		return "", fmt.Errorf("changes of job %s: %w", r.Job, err)
	}
	return string(body), nil
}
