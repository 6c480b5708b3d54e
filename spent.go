package makegood

// Spent is the usage of AWS by a job, or by many, in units that have a price: Prices.Dollars. It is counted on a
// deployed stack only: an engine in a process of yours makes no requests of AWS.
//
// It is the sum of the usage known to the job's saves: requests of DynamoDB, SQS and Lambda that were made for it,
// shared fairly where one request was for several jobs, and the time of functions. Usage that belongs to no job is
// left out: polling, sweeps, logs, storage.
type Spent struct {
	// WriteUnits of DynamoDB are of 1 KB, ReadUnits of 4 KB, indexes and failed conditions included.
	WriteUnits float64 `json:"writeUnits"`
	ReadUnits  float64 `json:"readUnits"`
	// Requests are requests to SQS, Invocations those of Lambda.
	Requests    float64 `json:"requests"`
	Invocations float64 `json:"invocations"`
	// GBSeconds are seconds of functions, times their memory in GB.
	GBSeconds float64 `json:"gbSeconds"`
}

// Plus returns the sum.
func (s Spent) Plus(more Spent) Spent {
	return Spent{
		WriteUnits: s.WriteUnits + more.WriteUnits, ReadUnits: s.ReadUnits + more.ReadUnits,
		Requests: s.Requests + more.Requests, Invocations: s.Invocations + more.Invocations, GBSeconds: s.GBSeconds + more.GBSeconds,
	}
}

// Prices are the prices of AWS for the units of Spent, in dollars.
type Prices struct {
	// Region is the region of the prices, Date the day they were looked up.
	Region string `json:"region"`
	Date   string `json:"date"`
	// MillionWrites are write units, MillionReads read units, of a DynamoDB table on demand.
	MillionWrites float64 `json:"millionWrites"`
	MillionReads  float64 `json:"millionReads"`
	// MillionRequests are requests to a standard queue of SQS.
	MillionRequests float64 `json:"millionRequests"`
	// MillionInvocations are requests of Lambda, GBSecond is its duration.
	MillionInvocations float64 `json:"millionInvocations"`
	GBSecond           float64 `json:"gbSecond"`
}

// ListPrices returns the list prices of us-east-1, of functions on arm64, without free tiers and savings plans.
func ListPrices() Prices {
	return Prices{
		Region: "us-east-1", Date: "2026-11-20",
		MillionWrites: 0.625, MillionReads: 0.125, MillionRequests: 0.40, MillionInvocations: 0.20, GBSecond: 0.0000133334,
	}
}

// Dollars returns the cost of s at these prices.
func (p Prices) Dollars(s Spent) float64 {
	const million = 1e6
	return s.WriteUnits*p.MillionWrites/million + s.ReadUnits*p.MillionReads/million +
		s.Requests*p.MillionRequests/million + s.Invocations*p.MillionInvocations/million + s.GBSeconds*p.GBSecond
}
