package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Scale says where a moment stands on a line, from 0 to 100.
type Scale struct {
	// Parts are those of the line, from its beginning to its end.
	Parts []Part
}

// Part is a span of a line, drawn at the same scale as all others that are not folded.
type Part struct {
	From, To time.Time
	// X and Width are where it stands, in per cent of the line.
	X, Width float64
	Folded   bool
}

// Took is how long it is.
func (p Part) Took() time.Duration { return p.To.Sub(p.From) }

// newScale folds what lies between busy spans, where that is long beside them.
func newScale(from, to time.Time, busy []span) Scale {
	var worked time.Duration
	for _, s := range busy {
		worked += s.to.Sub(s.from)
	}
	folds := foldsOf(from, to, busy, worked)
	var s Scale
	var open time.Duration
	at := from
	for _, f := range folds {
		s.add(at, f.from, false)
		s.add(f.from, f.to, true)
		open += f.from.Sub(at)
		at = f.to
	}
	s.add(at, to, false)
	open += to.Sub(at)
	s.place(open, len(folds))
	return s
}

// foldsOf are the spans that are folded, in order.
func foldsOf(from, to time.Time, busy []span, worked time.Duration) []span {
	var idle []span
	at := from
	for _, s := range append(slices.Clone(busy), span{to, to}) {
		if gap := s.from.Sub(at); gap >= shortest && gap*share > worked {
			idle = append(idle, span{at, s.from})
		}
		at = later(at, s.to)
	}
	if len(busy) == 0 {
		return nil // It could not hide any work.
	}
	slices.SortFunc(idle, func(a, b span) int { return cmp.Compare(b.to.Sub(b.from), a.to.Sub(a.from)) })
	idle = idle[:min(len(idle), maxFolds)]
	slices.SortFunc(idle, func(a, b span) int { return a.from.Compare(b.from) })
	return idle
}

func (s *Scale) add(from, to time.Time, folded bool) {
	if to.After(from) {
		s.Parts = append(s.Parts, Part{From: from, To: to, Folded: folded})
	}
}

// place gives each part its room.
func (s *Scale) place(open time.Duration, folds int) {
	width := 0.0
	if folds > 0 {
		width = min(foldWidth, allFolds/float64(folds))
	}
	left := 100 - width*float64(folds)
	if open <= 0 && folds > 0 {
		width, left = 100/float64(folds), 0
	}
	x := 0.0
	for i := range s.Parts {
		p := &s.Parts[i]
		p.X, p.Width = x, width
		if !p.Folded {
			p.Width = left * float64(p.Took()) / float64(open)
		}
		x += p.Width
	}
}

// X is where a moment stands, in per cent of the line.
func (s Scale) X(at time.Time) float64 {
	for _, p := range s.Parts {
		if at.After(p.To) {
			continue
		}
		return p.X + p.Width*float64(max(0, at.Sub(p.From)))/float64(p.Took())
	}
	return 100
}

// Tick is a moment that is named on the line.
type Tick struct {
	At time.Time
	X  float64
	// After is how long after the beginning of its part it is; zero: it is the beginning.
	After time.Duration
}

// steps are the distances that ticks may have.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour,
	28 * 24 * time.Hour,
}

// apart is how far from each other, and from an end, ticks are at least, in per cent.
const apart = 11.0

// Ticks are labelled moments: the start of each unfolded part with room, and after it moments at even distances.
func (s Scale) Ticks() (all []Tick) {
	perCent := s.perCent()
	step := steps[len(steps)-1]
	for _, d := range steps {
		if perCent > 0 && float64(d)/perCent >= apart {
			step = d
			break
		}
	}
	for _, p := range s.Parts {
		if p.Folded || p.Width < apart {
			continue
		}
		all = append(all, Tick{At: p.From, X: p.X})
		for after := step; p.From.Add(after).Before(p.To); after += step {
			x := s.X(p.From.Add(after))
			if p.X+p.Width-x < apart/2 || perCent <= 0 {
				break
			}
			all = append(all, Tick{At: p.From.Add(after), X: x, After: after})
		}
	}
	return all
}

// perCent is how many nanoseconds one per cent of an open part is.
func (s Scale) perCent() float64 {
	for _, p := range s.Parts {
		if !p.Folded && p.Width > 0 {
			return float64(p.Took()) / p.Width
		}
	}
	return 0
}
