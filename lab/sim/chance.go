package sim

import (
	"math/rand/v2"
	"time"
)

// chance is where all that is random comes from: a seed, and the name of what asks. What one part of a
// run asks for never changes what another part gets, so a fault can be left out and the rest stays as it
// was.
type chance struct{ seed uint64 }

// of returns the random numbers of a name.
func (c chance) of(parts ...string) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, hash(parts...)))
}

// hash is FNV-1a over the parts, with a zero byte behind each.
func hash(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	return h
}

// between returns a time from least to most, in nanoseconds: that no two things happen at one moment is what
// makes a run come out the same.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// oneIn reports true once in n.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// pick returns one of all.
func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }
