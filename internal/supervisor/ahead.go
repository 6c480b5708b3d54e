package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/store"
)

// A job or schedule that is about to begin gets one delayed message, which arrives when its key does. So a sweep
// looks only at the part of the next minutes that earlier sweeps have not; how far those came, by shard, is kept as a
// place.
const (
	aheadName = "ahead"
	// aheadAgain is how much of the earlier stretch is looked at again, since the index may lag behind the store.
	aheadAgain = 2 * time.Second
	// aheadSkew is how far the clock of the Scheduler may be behind: a message that comes before its key is stale there.
	aheadSkew = 200 * time.Millisecond
)

// untilItsKey is the delay of a message that comes when its key does, rounded up to the seconds of SQS.
func (s *Supervisor) untilItsKey(entry store.Entry) time.Duration {
	ahead := max(0, entry.CompleteBy.Sub(s.config.Now())+aheadSkew)
	return (ahead + time.Second - 1).Truncate(time.Second)
}

// lookout is the part ahead that one sweep looks at. nil looks at no part.
type lookout struct {
	supervisor *Supervisor
	beginnings store.Beginnings
	now, until time.Time
	// place is the text as stored, seen its content by shard, and all that content with the progress since.
	place string
	seen  map[int]store.Entry
	mu    sync.Mutex
	all   map[int]store.Entry
}

// lookAhead begins to look ahead, where that is configured.
func (s *Supervisor) lookAhead(ctx context.Context) (*lookout, error) {
	b, ok := s.config.Index.(store.Beginnings)
	if !ok || s.config.Ahead == 0 {
		return nil, nil
	}
	place, err := s.config.Places.Place(ctx, aheadName)
	if err != nil {
		return nil, fmt.Errorf("look ahead: %w", err)
	}
	now := domain.Instant(s.config.Now())
	return &lookout{
		supervisor: s, beginnings: b, now: now, until: now.Add(s.config.Ahead), place: place, seen: readAhead(place), all: readAhead(place),
	}, nil
}

// stretch returns the part of a shard to look at, without overdue keys.
func (l *lookout) stretch(shard int) (stretch, bool) {
	if l == nil || !l.beginnings.OfBeginnings(shard) {
		return stretch{}, false
	}
	from := l.seen[shard]
	if from.Job == "" && from.Schedule == "" {
		from.CompleteBy = from.CompleteBy.Add(-aheadAgain)
	}
	// A place further ahead than any sweep looks comes from a wrong clock.
	if !from.CompleteBy.After(l.now) || from.CompleteBy.After(l.until) {
		from = store.Entry{CompleteBy: l.now}
	}
	return stretch{from: from, until: l.until}, true
}

// reached notes how far a shard was looked at.
func (l *lookout) reached(shard int, at store.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[shard] = at
}

// keepWithin is how long it may take to keep a place after the time of a sweep has ended.
const keepWithin = 2 * time.Second

// keep keeps how far was looked. Where that fails, the next sweep looks at the same again.
func (l *lookout) keep(ctx context.Context) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWithin)
	defer cancel()
	err := l.supervisor.config.Places.KeepPlace(ctx, aheadName, l.place, writeAhead(l.all))
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("look ahead: %w", err)
	}
	return nil
}

// writeAhead writes entries by shard: SHARD=MILLISECONDS, and for an entry that is no end /j/ and the job's id, or
// /s/ and the schedule's name. Neither holds a space.
func writeAhead(all map[int]store.Entry) string {
	var parts []string
	for shard := 0; len(parts) < len(all); shard++ {
		at, ok := all[shard]
		if !ok {
			continue
		}
		part := fmt.Sprintf("%d=%d", shard, at.CompleteBy.UnixMilli())
		switch {
		case at.Schedule != "":
			part += "/s/" + at.Schedule
		case at.Job != "":
			part += "/j/" + at.Job
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// readAhead reads what writeAhead writes, and leaves out what cannot be read.
func readAhead(text string) map[int]store.Entry {
	all := map[int]store.Entry{}
	for part := range strings.FieldsSeq(text) {
		number, rest, _ := strings.Cut(part, "=")
		key, of, _ := strings.Cut(rest, "/")
		kind, name, _ := strings.Cut(of, "/")
		shard, err1 := strconv.Atoi(number)
		millis, err2 := strconv.ParseInt(key, 10, 64)
		if errors.Join(err1, err2) != nil || shard < 0 {
			continue
		}
		at := store.Entry{CompleteBy: time.UnixMilli(millis).UTC()}
		switch kind {
		case "j":
			at.Job = name
		case "s":
			at.Schedule = name
		}
		all[shard] = at
	}
	return all
}
