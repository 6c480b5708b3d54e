package job

// SpentParts is in how many parts a request is counted: a share of one that up to ten messages have in common is a whole number
// of them.
const SpentParts = 2520

// Spent is what AWS counts for a job, in units that have a price. Nothing is ever decided by it: it is not what the machine
// sees, and no condition asks for it. The zero value says that nothing was counted.
type Spent struct {
	// Writes are write units of DynamoDB, those of its indexes and of failed conditions among them. HalfReads are halves of a
	// read unit: an eventually consistent read costs half of one.
	Writes    int64 `json:"writes,omitempty"`
	HalfReads int64 `json:"halfReads,omitempty"`
	// Requests are those of SQS, Invocations those of Lambda, both in SpentParts of one.
	Requests    int64 `json:"requests,omitempty"`
	Invocations int64 `json:"invocations,omitempty"`
	// GBMicros are microseconds of a function that has 1 GB of memory.
	GBMicros int64 `json:"gbMicros,omitempty"`
}

// Counted reports whether anything was counted.
func (s Spent) Counted() bool { return s != Spent{} }

// maxSpent is as far as a number grows. A job whose agents lie again and again stays one that can be read.
const maxSpent = 1 << 60

// Plus returns both together.
func (s Spent) Plus(more Spent) Spent {
	return Spent{
		Writes: plus(s.Writes, more.Writes), HalfReads: plus(s.HalfReads, more.HalfReads),
		Requests: plus(s.Requests, more.Requests), Invocations: plus(s.Invocations, more.Invocations), GBMicros: plus(s.GBMicros, more.GBMicros),
	}
}

func plus(a, b int64) int64 { return min(a, maxSpent) + min(b, maxSpent-min(a, maxSpent)) }

// Minus returns what is left of s without less.
func (s Spent) Minus(less Spent) Spent {
	return Spent{
		Writes: s.Writes - less.Writes, HalfReads: s.HalfReads - less.HalfReads,
		Requests: s.Requests - less.Requests, Invocations: s.Invocations - less.Invocations, GBMicros: s.GBMicros - less.GBMicros,
	}
}
