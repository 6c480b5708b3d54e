// Package changes passes on the changes of jobs, to every listener. It holds the port, a Relay that keeps slow
// listeners away from the processes that move jobs, and a Hub for live viewers. It decides nothing: the core makes the
// changes, and jobs remember them until they are acknowledged.
package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
)

// ErrLater is a Publisher's answer if it accepted a run, and reports the outcome later.
var ErrLater = errors.New("it is said later whether they were published")

// Publisher hands on runs of changes.
type Publisher interface {
	// Publish passes on runs, each of another job. It returns an error for each: nil means that the run is stored durably;
	// ErrLater that the outcome is reported later. Runs of one job come in the order of their numbers, and one may begin
	// with changes that another had.
	Publish(ctx context.Context, runs []Run) []error
}

// Run is changes of one job that are published together. It has one at least.
type Run struct {
	makegood.Changes
	// Confirm: the job is at rest, and is to hear at once that they were published.
	Confirm bool
}

// UpTo is the number of the last change.
func (r Run) UpTo() int { return r.Changes.Changes[len(r.Changes.Changes)-1].Number }

// Encode writes the run in its published form: makegood.Changes as JSON.
func (r Run) Encode() (string, error) {
	body, err := json.Marshal(r.Changes)
	if err != nil {
		return "", fmt.Errorf("changes of job %s: %w", r.Job, err)
	}
	return string(body), nil
}
