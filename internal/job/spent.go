package job

// SpentParts is the number of parts in which a request is counted: a share of a request that up to ten messages have in
// common is a whole number of parts.
const SpentParts = 2520

// Spent is the usage of AWS by a job, in units that have a price. It never decides: the machine does not see it, and no
// condition asks for it. The zero value: usage was not counted.
type Spent struct {
	// Writes are write units of DynamoDB, those of its indexes and of failed conditions among them. HalfReads are halves of
	// a read unit: an eventually consistent read costs half of one.
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

// maxSpent is as far as a number grows. A job stays readable even if its agents lie again and again.
const maxSpent = 1 << 60

// Plus returns both together.
func (s Spent) Plus(more Spent) Spent {
	return Spent{
		Writes: plus(s.Writes, more.Writes), HalfReads: plus(s.HalfReads, more.HalfReads),
		Requests: plus(s.Requests, more.Requests), Invocations: plus(s.Invocations, more.Invocations), GBMicros: plus(s.GBMicros, more.GBMicros),
	}
}

func plus(a, b int64) int64 { return min(a, maxSpent) + min(b, maxSpent-min(a, maxSpent)) }

// Minus returns s without less.
func (s Spent) Minus(less Spent) Spent {
	return Spent{
		Writes: s.Writes - less.Writes, HalfReads: s.HalfReads - less.HalfReads,
		Requests: s.Requests - less.Requests, Invocations: s.Invocations - less.Invocations, GBMicros: s.GBMicros - less.GBMicros,
	}
}
