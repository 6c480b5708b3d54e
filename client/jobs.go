package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// Jobs is how a program works with jobs, wherever they are: an engine in its process (engine.Engine), an HTTP address
// (New), a deployed stack (doors.New), or a folder that no engine needs to run on (folder.Open, which reads).
//
// Errors: ErrNotFound, *MismatchError, *RefusedError, *InvalidError, after which nothing has changed; and
// *UnreachableError, or another, after which it is unknown what became of the request: every one may be made again
// without harm.
type Jobs interface {
	// Submit stores a job, with its first attempts, before it answers, and gives it without payloads. Where the same id
	// with the same content was there already, which is the same job, Existed is set.
	Submit(ctx context.Context, s makegood.Submission) (Job, error)
	// Get reads a job with its input and outputs; Look without.
	Get(ctx context.Context, id string) (Job, error)
	Look(ctx context.Context, id string) (Job, error)
	// List gives jobs, and reads on as far as its caller does. An error ends it.
	List(ctx context.Context, filter Filter) iter.Seq2[Listed, error]
	// Wait waits until a job is finished or in Error, and gives it with its payloads. It ends with ctx's error when
	// ctx does.
	Wait(ctx context.Context, id string) (Job, error)
	// Watch gives a job without payloads each time something about it has changed, first as it is now, and ends after
	// giving it finished or in Error. Changes that follow closely upon each other may be seen as one.
	Watch(ctx context.Context, id string) iter.Seq2[Job, error]
	// Ask asks for a verb, and gives the job as it is stored after it, without payloads. Asked for what is so already,
	// it succeeds. reason may be empty.
	Ask(ctx context.Context, id string, verb makegood.Verb, reason string) (Job, error)
	// Workflows lists what jobs can be submitted to.
	Workflows(ctx context.Context) ([]Workflow, error)
}

var _ Jobs = (*Client)(nil)

// NewJobID makes an id whose order is that of time: 12 hex digits of milliseconds, and 70 random bits.
func NewJobID(now time.Time) string {
	return fmt.Sprintf("%012x%s", now.UnixMilli(), strings.ToLower(rand.Text()[:14]))
}
