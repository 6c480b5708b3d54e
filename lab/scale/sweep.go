package scale

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// The rhythm of a stack, and the assumptions about AWS.
const (
	sweepPeriod = time.Minute
	// sweepFor is how long a sweep may take: the Timeout of template.yaml, and two seconds less.
	sweepFor = 48 * time.Second
	// requestTime is how long a request to DynamoDB or SQS takes, assumed.
	requestTime = 10 * time.Millisecond
)

// backlog is a stack with many jobs that are overdue at once.
type backlog struct {
	jobs, shards int
	// atOnce and waits are of the Supervisor: shards that it goes through at once, and whether it waits for the Scheduler.
	atOnce int
	waits  bool
	// perSecond is how many events the Scheduler takes a second; depthAge how old the depth of a queue is that SQS tells.
	perSecond int
	depthAge  time.Duration
}

// outcome is the course of a backlog.
type outcome struct {
	// told is when the last job was told of, dealt when the Scheduler had taken the last.
	told, dealt time.Duration
	// firstMinute is how many jobs the first sweep told of; sent counts messages, mostWaiting those that waited at once.
	firstMinute, sent, mostWaiting int
	// requests are those of all sweeps, sweeps how many there were.
	requests, sweeps int
}

// play lets sweeps tell of a backlog until the Scheduler has dealt with it. It needs virtual time.
func play(ctx context.Context, b backlog) (outcome, error) {
	s := &sides{b: b, began: time.Now(), dealt: make([]bool, b.jobs), toldOf: make([]bool, b.jobs), first: make([]int, b.shards)}
	config := supervisor.Config{
		Index: s, Queue: s, Events: "events", Leases: s, Holder: "supervisor", Places: s, Ahead: limits.RemindWithin,
		AtOnce: b.atOnce, Logger: slog.New(slog.DiscardHandler),
	}
	if b.waits {
		config.AskAgain = time.Second
	}
	sweeps := supervisor.New(config)
	var out outcome
	for ; s.left() > 0; out.sweeps++ {
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, sweepFor)
		_, err := sweeps.Sweep(ctx)
		cut := ctx.Err() != nil
		cancel()
		if err != nil && !cut {
			return out, err
		}
		if out.sweeps == 0 {
			out.firstMinute = s.told
		}
		time.Sleep(time.Until(began.Add(sweepPeriod)))
	}
	out.told, out.dealt, out.sent, out.mostWaiting, out.requests = s.lastTold, s.lastDealt, s.sent, s.mostWaiting, s.requests
	return out, nil
}

// sides are the index and the queue beside the Supervisor, with the Scheduler that takes the events. A job leaves the
// index when the Scheduler has taken its event.
type sides struct {
	b     backlog
	began time.Time

	mu       sync.Mutex
	requests int
	// toldOf and dealt are by job; first is the first job of each shard that is not dealt with.
	toldOf, dealt []bool
	first         []int
	told          int
	// waiting are the events, in their order; taken is until when the Scheduler has taken some.
	waiting             []int
	taken               time.Duration
	sent, mostWaiting   int
	done                int
	lastTold, lastDealt time.Duration
	depths              []int // by second
}

// request lets the time of one pass, unless the time of the sweep ends before.
func (s *sides) request(ctx context.Context) error {
	if err := pause.For(ctx, requestTime); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.take()
	return nil
}

// take lets the Scheduler take events, a tenth of a second at a time. s.mu is held.
func (s *sides) take() {
	const tenth = time.Second / 10
	for now := time.Since(s.began); s.taken+tenth <= now; {
		s.taken += tenth
		n := min(s.b.perSecond/10, len(s.waiting))
		for _, job := range s.waiting[:n] {
			if !s.dealt[job] {
				s.dealt[job] = true
				s.done++
				s.lastDealt = s.taken
			}
		}
		s.waiting = s.waiting[n:]
		if s.taken%time.Second == 0 {
			s.depths = append(s.depths, len(s.waiting))
		}
	}
}

func (s *sides) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take()
	return s.b.jobs - s.done
}

// Shards is how many there are; the last one is of beginnings, and empty.
func (s *sides) Shards() int { return s.b.shards + 1 }

// OfBeginnings is the last shard.
func (s *sides) OfBeginnings(shard int) bool { return shard == s.b.shards }

// Due lists the jobs of a shard that the Scheduler has not dealt with. Job n is in shard n modulo their number.
func (s *sides) Due(ctx context.Context, shard int, _ time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if err := s.request(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.OfBeginnings(shard) {
		return nil, nil
	}
	for s.first[shard]*s.b.shards+shard < s.b.jobs && s.dealt[s.first[shard]*s.b.shards+shard] {
		s.first[shard]++
	}
	from := s.first[shard]
	if after.Job != "" {
		n, err := strconv.Atoi(after.Job)
		if err != nil {
			return nil, err
		}
		from = max(from, n/s.b.shards+1)
	}
	var page []store.Entry
	for n := from*s.b.shards + shard; n < s.b.jobs && len(page) < limit; n += s.b.shards {
		if !s.dealt[n] {
			page = append(page, store.Entry{CompleteBy: s.began, Job: strconv.Itoa(n)})
		}
	}
	return page, nil
}

// Send puts events into the queue, ten a request, one request after the other, as the shipped queue does.
func (s *sides) Send(ctx context.Context, _ string, messages ...queue.Message) []error {
	for at := 0; at < len(messages); at += limits.MaxBatch {
		if err := s.request(ctx); err != nil {
			return slices.Concat(make([]error, at), slices.Repeat([]error{err}, len(messages)-at))
		}
		for _, m := range messages[at:min(at+limits.MaxBatch, len(messages))] {
			s.hear(m.Group)
		}
	}
	return nil
}

func (s *sides) hear(id string) {
	n, err := strconv.Atoi(id)
	if err != nil {
		panic(fmt.Sprintf("scale: job %q is not of this backlog", id))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.toldOf[n] {
		s.toldOf[n] = true
		s.told++
		s.lastTold = time.Since(s.began)
	}
	s.sent++
	s.waiting = append(s.waiting, n)
	s.mostWaiting = max(s.mostWaiting, len(s.waiting))
}

// Depth is that of a while ago.
func (s *sides) Depth(ctx context.Context, _ string) (queue.Depth, error) {
	if err := s.request(ctx); err != nil {
		return queue.Depth{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := len(s.depths) - 1 - int(s.b.depthAge/time.Second)
	if s.b.depthAge == 0 {
		return queue.Depth{Waiting: len(s.waiting), InFlight: 1}, nil
	}
	if at < 0 {
		return queue.Depth{InFlight: 1}, nil
	}
	return queue.Depth{Waiting: s.depths[at], InFlight: 1}, nil
}

// TakeLease is always granted.
func (s *sides) TakeLease(ctx context.Context, _, _ string, _, _ time.Time) error {
	return s.request(ctx)
}

// ReleaseLease takes a request.
func (s *sides) ReleaseLease(ctx context.Context, _, _ string) error { return s.request(ctx) }

// Place is empty: the look ahead begins anew.
func (s *sides) Place(ctx context.Context, _ string) (string, error) { return "", s.request(ctx) }

// KeepPlace keeps none.
func (s *sides) KeepPlace(ctx context.Context, _, _, _ string) error { return s.request(ctx) }
