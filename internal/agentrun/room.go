package agentrun

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// drainWithin is how long a task that is to run alone waits for running ones. After that it runs beside them: a process
	// that always has a longer task would never begin it.
	drainWithin = 30 * time.Second
	// aloneFor is how long no other task is begun beside a task that runs alone: a task that kills its process has mostly
	// done so by then, and work of days does not keep others out.
	aloneFor = time.Minute
	// aloneDeliveries is how often such a task's message is given back because its invocation has too little time left.
	aloneDeliveries = 3
)

// loner is a record with a task that is to run alone.
type loner struct {
	record events.SQSMessage
	task   makegood.Task
}

// apart separates the records of tasks that are to run alone from all others.
func apart(event events.SQSEvent) (company []events.SQSMessage, alone []loner) {
	if !slices.ContainsFunc(event.Records, saysAlone) {
		return event.Records, nil
	}
	for _, record := range event.Records {
		if task, is := isAlone(record); is {
			alone = append(alone, loner{record, task})
			continue
		}
		company = append(company, record)
	}
	return company, alone
}

// isAlone reads no task that does not have the word in it: they are read again when they are done.
func isAlone(record events.SQSMessage) (makegood.Task, bool) {
	if !saysAlone(record) {
		return makegood.Task{}, false
	}
	task, err := wire.DecodeTask(record.Body)
	return task, err == nil && task.Alone && !task.Shared
}

func saysAlone(record events.SQSMessage) bool { return strings.Contains(record.Body, `"alone"`) }

// mayBegin reports whether the invocation has at least the time that a task may be silent, or the message came often
// enough.
func mayBegin(ctx context.Context, one loner) bool {
	end, ends := ctx.Deadline()
	return !ends || time.Until(end)-reserve >= domain.Silence(one.task).Std() || sqsbatch.ReceiveCount(one.record) >= aloneDeliveries
}

// company describes the other tasks beside a task.
type company struct {
	// beside is how many others may be under way when it begins.
	beside int
	// open is there for a task that runs alone, and lets others in; later is how many those may be.
	open  func()
	later int
}

// Room is where the tasks of a process run: many at once, or one by itself. The zero value is empty and open.
type Room struct {
	mu     sync.Mutex
	inside int
	// shut is there while one waits for the others to leave or runs by itself, and is closed when others may come in again.
	shut chan struct{}
	// empty is there while one waits for the others, and is closed when they have left.
	empty chan struct{}
}

// enter waits until the room is open. An error is the cause of ctx's end: then the caller is not inside.
func (r *Room) enter(ctx context.Context) error {
	return r.whenOpen(ctx, func() { r.inside++ })
}

// tryEnter enters the room if it is open.
func (r *Room) tryEnter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut != nil {
		return false
	}
	r.inside++
	return true
}

func (r *Room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
	if r.inside == 0 && r.empty != nil {
		close(r.empty)
		r.empty = nil
	}
}

// enterAlone shuts the room, and waits until those inside have left, but for drainWithin at most: empty says whether
// they have. Others may come in once open is called, which may be called again. An error is the cause of ctx's end:
// then the caller has not entered.
func (r *Room) enterAlone(ctx context.Context) (empty bool, open func(), err error) {
	shut := make(chan struct{})
	var left chan struct{}
	err = r.whenOpen(ctx, func() {
		r.shut = shut
		if r.inside > 0 {
			left = make(chan struct{})
			r.empty = left
		}
	})
	if err != nil {
		return false, nil, err
	}
	open = sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shut, r.empty = nil, nil
		close(shut)
	})
	if empty, err = drained(ctx, left); err != nil {
		open()
		return false, nil, err
	}
	r.mu.Lock()
	r.inside++
	r.mu.Unlock()
	return empty, open, nil
}

// drained waits for the others, which have left when left is closed; nil: there were none.
func drained(ctx context.Context, left <-chan struct{}) (empty bool, err error) {
	if left == nil {
		return true, nil
	}
	patience := time.NewTimer(drainWithin)
	defer patience.Stop()
	select {
	case <-left:
		return true, nil
	case <-patience.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// whenOpen calls do under the lock, while the room is open.
func (r *Room) whenOpen(ctx context.Context, do func()) error {
	for {
		r.mu.Lock()
		shut := r.shut
		if shut == nil {
			do()
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
