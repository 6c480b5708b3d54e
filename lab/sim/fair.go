package sim

import (
	"slices"
	"time"
)

// SQS publishes these thresholds of its fair queues, and calls them approximate: a group is noisy with more than a
// tenth of the messages in flight, and so many at least, or with more than a tenth of the time spent on messages of
// late, which are five minutes here. The messages of others are delivered before. It is noisy until none of it waits,
// or for five minutes without a reason.
const (
	noisyInFlight = 30
	noisyShare    = 10
	quietAfter    = 5 * time.Minute
)

// fairness is how a fair queue delivers.
type fairness struct {
	// noisy is when a group was last found to be noisy.
	noisy map[string]time.Time
	// spent is how long messages were at work in the last quietAfter.
	spent []spell
	// turned counts the looks at which another order came out than that in which the messages were sent.
	turned int
}

// spell is the time that a message of a group took.
type spell struct {
	group string
	end   time.Time
	took  time.Duration
}

// worked notes how long a message was at work.
func (f *fairness) worked(group string, from, to time.Time) {
	f.spent = append(f.spent, spell{group, to, to.Sub(from)})
}

// order returns the messages of a queue as they are delivered.
func (f *fairness) order(all []*message, now time.Time) []*message {
	f.spent = slices.DeleteFunc(f.spent, func(s spell) bool { return now.Sub(s.end) > quietAfter })
	inFlight, flying, waiting := 0, map[string]int{}, map[string]bool{}
	for _, m := range all {
		if m.receives > 0 && m.visibleAt.After(now) {
			flying[m.group]++
			inFlight++
		}
		waiting[m.group] = waiting[m.group] || !m.visibleAt.After(now)
	}
	worked, total := map[string]time.Duration{}, time.Duration(0)
	for _, s := range f.spent {
		worked[s.group] += s.took
		total += s.took
	}
	for group, waits := range waiting {
		many := flying[group] >= noisyInFlight && flying[group]*noisyShare > inFlight
		if long := worked[group]*noisyShare > total; waits && (many || long) {
			f.noisy[group] = now
		}
		if last, is := f.noisy[group]; is && (!waits || now.Sub(last) > quietAfter) {
			delete(f.noisy, group)
		}
	}
	noisy := func(m *message) int {
		if _, is := f.noisy[m.group]; is {
			return 1
		}
		return 0
	}
	fair := slices.Clone(all)
	slices.SortStableFunc(fair, func(a, b *message) int { return noisy(a) - noisy(b) })
	if !slices.Equal(fair, all) {
		f.turned++
	}
	return fair
}
