// Package sizing says how large a stack on AWS must be for a load: the parameters of the template, the limits of AWS
// that the load comes near, and the bill of a month. It computes from the counts of make cost, and makes no request to
// AWS.
package sizing

import (
	"fmt"
	"math"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Limits of AWS and of the template.
const (
	// PartitionWrites and PartitionReads are the units a second of one partition of DynamoDB. A shard of the index is in
	// one: its keys rise with time, so a split leaves all new ones in one half.
	PartitionWrites = 1000
	PartitionReads  = 3000
	// TableUnits is the quota of a table, and of each of its indexes, on demand: write units a second, and read units.
	TableUnits = 40_000
	// WarmWrites are the write units that a new table takes at once.
	WarmWrites = 4000
	// InFlight is how many messages of a standard queue may be received and not yet deleted.
	InFlight = 120_000
	// MappingConcurrency is how many batches of one queue Lambda handles at once, MappingRise how many more each minute.
	MappingConcurrency = 1000
	MappingRise        = 300
	// AccountConcurrency is the quota of an account for Lambda; a new account may have less. Unreserved is its part that
	// functions with a reserve cannot have.
	AccountConcurrency = 1000
	Unreserved         = 100
	// MaxShards is the largest number of shards that the template takes.
	MaxShards = 1024
	// headroom is the factor between the capacity of a shard or a function and its average load: hashes and arrivals are
	// uneven.
	headroom = 2
)

// Assumptions, which are not counted. The laboratory prices with the same figures.
const (
	// RunSeconds is how long an invocation takes beside the work of steps, of ten records as of one; MemoryGB is that of
	// template.yaml's functions.
	RunSeconds = 0.050
	MemoryGB   = 0.25
	// StoredBytes is a stored job of referenceSteps steps with its entries in indexes and its claims; LogBytes are those of
	// an invocation.
	StoredBytes = 2048
	LogBytes    = 1000
	// Month is the number of seconds in a month of 30 days.
	Month = 30 * 24 * 3600
)

// Prices beside those of makegood.ListPrices, in dollars.
const (
	GBOfLogs        = 0.50
	GBMonth         = 0.25
	GBMonthOfBackup = 0.20
)

// The limits of a load, and its defaults.
const (
	maxJobsPerSecond = 100_000
	maxPayloadBytes  = 256 << 10
	// maxStepSeconds is the part of an agent's function, of 15 minutes, for the work of a step.
	maxStepSeconds = 890
	// maxInlineSeconds is the part of an invocation of the Scheduler, of 30 seconds, for an inline step.
	maxInlineSeconds = 25
	maxRetentionDays = 3650
	defaultRetention = 30
	secondsOfADay    = 24 * 3600
	smallestMemoryMB = 128
	largestMemoryMB  = 10_240
	defaultMemoryMB  = 256
	megabytesOfAGB   = 1024
	bytesOfAGB       = 1e9
)

// Load is the work of a stack.
type Load struct {
	// JobsPerSecond is the load at its peak, Average the share of it that the month has, 0 to 1.
	JobsPerSecond float64 `json:"jobsPerSecond"`
	Average       float64 `json:"average"`
	// Steps is how many steps a job has, Way how they get to their agent (Ways).
	Steps int    `json:"steps"`
	Way   string `json:"way"`
	// Batched: all messages come in full batches of ten; else each comes alone.
	Batched bool `json:"batched"`
	// PayloadBytes is the size of the input of a job, and of the output of each step.
	PayloadBytes int `json:"payloadBytes"`
	// StepSeconds is how long the work of a step takes; AgentMB is the memory of an agent's function.
	StepSeconds float64 `json:"stepSeconds"`
	AgentMB     int     `json:"agentMB"`
	// Agents is how many agents share the steps, each with a queue and a function.
	Agents int `json:"agents"`
	// SlowShare is the share of the steps that outlast the first look after them.
	SlowShare float64 `json:"slowShare"`
	// Items is how many items the map of a job has, beside its steps; 0: no map. ItemsTogether items are one task.
	Items         int `json:"items"`
	ItemsTogether int `json:"itemsTogether"`
	// Waits is how many further steps of a job wait: for a time, or for a person.
	Waits int `json:"waits"`
	// RetentionDays is how long an ended job is kept.
	RetentionDays int `json:"retentionDays"`
}

// together returns how many items a task of a map has; 0: the job has no map.
func (l Load) together() int { return min(l.Items, l.ItemsTogether) }

// work returns the number of steps of a job that do work, its items among them.
func (l Load) work() int { return l.Steps + l.Items }

// batch returns the number of records in an invocation.
func (l Load) batch() float64 {
	if l.Batched {
		return limits.MaxBatch
	}
	return 1
}

// Usual returns a load with the default of each field that has one.
func Usual() Load {
	return Load{Average: 1, Steps: referenceSteps, Way: Queue, ItemsTogether: 1, PayloadBytes: SmallBytes, AgentMB: defaultMemoryMB, Agents: 1, RetentionDays: defaultRetention}
}

// Check refuses a load that no job or stack can have. field is the name of the wrong field in the JSON of a load.
func (l Load) Check() (field string, err error) {
	inline := l.Way != Queue
	longest := float64(maxStepSeconds) / float64(max(1, l.together()))
	if inline {
		longest = maxInlineSeconds
	}
	switch {
	case !(l.JobsPerSecond > 0 && l.JobsPerSecond <= maxJobsPerSecond):
		return "jobsPerSecond", fmt.Errorf("%g: want more than 0, and at most %d", l.JobsPerSecond, maxJobsPerSecond)
	case !(l.Average > 0 && l.Average <= 1):
		return "average", fmt.Errorf("%g: want a share, more than 0 and at most 1", l.Average)
	case l.Items < 0 || l.Items > makegood.MaxItems:
		return "items", fmt.Errorf("%d: want 0 to %d", l.Items, makegood.MaxItems)
	case l.Items > 0 && inline:
		return "items", fmt.Errorf("%d: counted are those that go through the queues, not by %s", l.Items, l.Way)
	case l.ItemsTogether < 1 || l.ItemsTogether > limits.MaxBatchItems:
		return "itemsTogether", fmt.Errorf("%d: want 1 to %d", l.ItemsTogether, limits.MaxBatchItems)
	case l.Steps < 0 || l.Steps == 0 && l.Items == 0 || l.Steps > limits.MaxSteps:
		return "steps", fmt.Errorf("%d: want 1 to %d", l.Steps, limits.MaxSteps)
	case l.Waits < 0 || l.Steps+l.Waits > limits.MaxSteps:
		return "waits", fmt.Errorf("%d: want 0 or more, and at most %d with the other steps", l.Waits, limits.MaxSteps)
	case l.PayloadBytes < 0 || l.PayloadBytes > maxPayloadBytes:
		return "payloadBytes", fmt.Errorf("%d: want 0 to %d bytes; larger payloads are in S3", l.PayloadBytes, maxPayloadBytes)
	case !(l.StepSeconds >= 0 && l.StepSeconds <= longest):
		return "stepSeconds", fmt.Errorf("%g: want 0 to %g, the time that a function has for a step by %s", l.StepSeconds, longest, l.Way)
	case l.AgentMB < smallestMemoryMB || l.AgentMB > largestMemoryMB:
		return "agentMB", fmt.Errorf("%d: want %d to %d", l.AgentMB, smallestMemoryMB, largestMemoryMB)
	case l.Agents < 1 || l.Agents > max(1, l.Steps):
		return "agents", fmt.Errorf("%d: want 1 to %d, the number of steps", l.Agents, l.Steps)
	case !(l.SlowShare >= 0 && l.SlowShare <= 1):
		return "slowShare", fmt.Errorf("%g: want a share, 0 to 1", l.SlowShare)
	case inline && l.SlowShare > 0:
		return "slowShare", fmt.Errorf("%g: no sweep looks after steps by %s", l.SlowShare, l.Way)
	case l.RetentionDays < 1 || l.RetentionDays > maxRetentionDays:
		return "retentionDays", fmt.Errorf("%d: want 1 to %d", l.RetentionDays, maxRetentionDays)
	}
	return "", nil
}

// Size is how large a stack must be.
type Size struct {
	Load Load `json:"load"`
	// Job is the usage of one job.
	Job Job `json:"job"`
	// Table and Index are the throughput of DynamoDB.
	Table Throughput `json:"table"`
	Index Throughput `json:"index"`
	// Shards, EventsConcurrency and WarmWrites are values of the template's parameters; WarmWrites is 0 where a new table
	// takes the load by itself. AgentConcurrency is that of each agent's row.
	Shards            int `json:"shards"`
	EventsConcurrency int `json:"eventsConcurrency"`
	WarmWrites        int `json:"warmWrites"`
	AgentConcurrency  int `json:"agentConcurrency"`
	// RampMinutes is how long Lambda takes to reach the largest of these concurrencies.
	RampMinutes int `json:"rampMinutes"`
	// TaskInFlight and EventInFlight are messages of one queue that are received and not deleted.
	TaskInFlight  int `json:"taskInFlight"`
	EventInFlight int `json:"eventInFlight"`
	// Quotas are the quotas that the load uses, and Over the requirements that exceed one stack.
	Quotas []Quota  `json:"quotas"`
	Over   []string `json:"over"`
	// Bill is a month of the load, by service.
	Bill  []Line  `json:"bill"`
	Total float64 `json:"dollarsAMonth"`
	// MillionSteps is the price of a million steps, or items, in dollars.
	MillionSteps float64 `json:"dollarsPerMillionSteps"`
	PricesOf     string  `json:"pricesOf"`
	Region       string  `json:"pricesRegion"`
}

// Job is the usage of one job.
type Job struct {
	WriteUnits  float64 `json:"writeUnits"`
	IndexUnits  float64 `json:"indexUnits"`
	ReadUnits   float64 `json:"readUnits"`
	SQSRequests float64 `json:"sqsRequests"`
	Events      float64 `json:"schedulerInvocations"`
	Tasks       float64 `json:"agentInvocations"`
}

// Throughput is the units a second of a table or an index, and the least number of partitions for them.
type Throughput struct {
	WriteUnits float64 `json:"writeUnits"`
	ReadUnits  float64 `json:"readUnits"`
	Partitions int     `json:"partitions"`
}

// Quota is a limit of an account that the load comes near.
type Quota struct {
	Name  string  `json:"name"`
	Needs float64 `json:"needs"`
	Has   float64 `json:"has"`
	// Ask: it has to be raised.
	Ask bool `json:"ask"`
}

// Line is a service on the bill.
type Line struct {
	Service string  `json:"service"`
	Of      string  `json:"of"`
	Dollars float64 `json:"dollars"`
}

// concurrencies are the values of EventsConcurrency.
var concurrencies = []int{2, 10, 25, 50, 100, 250, 500, 1000}

// Of sizes a stack for a load, which Check must have accepted.
func Of(l Load) Size {
	c := countOf(l)
	s := Size{Load: l, Job: Job{c.Writes, c.Index + WaitIndex*float64(l.Waits), c.Reads, c.Requests, c.Events, c.Tasks}, Quotas: []Quota{}, Over: []string{}}
	s.database(c)
	s.functions(c)
	s.quotas()
	s.bill(c)
	return s
}

// database sizes the table and its index.
func (s *Size) database(c Count) {
	l := s.Load
	moved := l.JobsPerSecond * c.Index
	begins := l.JobsPerSecond * WaitIndex * float64(l.Waits)
	s.Table = throughput(l.JobsPerSecond*(c.Writes-s.Job.IndexUnits), l.JobsPerSecond*c.Reads)
	s.Index = throughput(moved+begins, 0)
	s.Shards = max(DefaultShards, shardsFor(moved))
	// Beginnings have FewBeginShards, and one more for each shard above the default.
	s.Shards = max(s.Shards, DefaultShards+shardsFor(begins)-FewBeginShards)
	s.Index.Partitions = s.Shards + FewBeginShards + s.Shards - DefaultShards
	if most := max(s.Table.WriteUnits, s.Index.WriteUnits); most > WarmWrites {
		s.WarmWrites = int(math.Ceil(most/PartitionWrites)) * PartitionWrites
	}
	if s.Shards > MaxShards {
		s.over("the index needs %d shards, and has %d at most", s.Shards, MaxShards)
	}
}

// The shards of the index as internal/store/dynamostore has them; a test compares.
const (
	DefaultShards  = 16
	FewBeginShards = 4
)

// shardsFor returns the number of shards for a rate of write units a second.
func shardsFor(units float64) int { return int(math.Ceil(headroom * units / PartitionWrites)) }

func throughput(writes, reads float64) Throughput {
	return Throughput{writes, reads, max(1, int(math.Ceil(max(writes/PartitionWrites, reads/PartitionReads))))}
}

// functions sizes the concurrency of the functions.
func (s *Size) functions(c Count) {
	l := s.Load
	events, tasks := l.JobsPerSecond*c.Events*s.eventSeconds(c), l.JobsPerSecond*s.taskSeconds(c)/float64(l.Agents)
	need := ceil(headroom * events)
	s.EventsConcurrency = concurrencies[len(concurrencies)-1]
	for _, n := range concurrencies {
		if n >= need {
			s.EventsConcurrency = n
			break
		}
	}
	if need > s.EventsConcurrency {
		s.over("the Scheduler needs %d batches at once, and Lambda handles %d of one queue", need, MappingConcurrency)
	}
	if c.Tasks > 0 {
		s.AgentConcurrency = max(2, ceil(headroom*tasks))
	}
	if s.AgentConcurrency > MappingConcurrency {
		s.over("each agent needs %d batches at once, and Lambda handles %d of one queue: more agents, or batches", s.AgentConcurrency, MappingConcurrency)
	}
	records := l.batch()
	s.EventInFlight, s.TaskInFlight = ceil(events*records), ceil(tasks*records)
	s.RampMinutes = ceil(float64(max(s.EventsConcurrency, s.AgentConcurrency)) / MappingRise)
}

// taskSeconds returns how long the agents' invocations for a job take. Tasks that come together are done side by side,
// the items of a task one after the other.
func (s *Size) taskSeconds(c Count) float64 {
	l := s.Load
	seconds := c.Tasks * (RunSeconds + l.StepSeconds)
	if l.Items > 0 {
		seconds += items(l).Tasks * l.StepSeconds * float64(l.together()-1)
	}
	return seconds
}

// eventSeconds returns the duration of an invocation of the Scheduler, with the work of inline steps.
func (s *Size) eventSeconds(c Count) float64 {
	if c.Tasks > 0 {
		return RunSeconds
	}
	// The jobs of a batch are at work side by side.
	return RunSeconds + float64(s.Load.Steps)*s.Load.StepSeconds/(c.Events*s.Load.batch())
}

// quotas compares the load with the quotas of an account.
func (s *Size) quotas() {
	functions := 2*s.EventsConcurrency + s.Load.Agents*s.AgentConcurrency
	s.quota("Lambda: concurrent executions (L-B99A9384)", float64(functions+Unreserved), AccountConcurrency)
	s.quota("DynamoDB: write units a second of a table", s.Table.WriteUnits, TableUnits)
	s.quota("DynamoDB: read units a second of a table", s.Table.ReadUnits, TableUnits)
	s.quota("DynamoDB: write units a second of an index", s.Index.WriteUnits, TableUnits)
	s.quota("SQS: messages in flight of a tasks queue", float64(s.TaskInFlight), InFlight)
	s.quota("SQS: messages in flight of the events queue", float64(s.EventInFlight), InFlight)
}

func (s *Size) quota(name string, needs, has float64) {
	s.Quotas = append(s.Quotas, Quota{Name: name, Needs: math.Ceil(needs), Has: has, Ask: needs > has})
}

// bill computes the bill of a month.
func (s *Size) bill(c Count) {
	l, p := s.Load, makegood.ListPrices()
	s.PricesOf, s.Region = p.Date, p.Region
	jobs := l.JobsPerSecond * l.Average * Month
	millions := func(n float64) float64 { return jobs * n / 1e6 }
	seconds := c.Events*s.eventSeconds(c)*MemoryGB + s.taskSeconds(c)*float64(l.AgentMB)/megabytesOfAGB
	kept := l.JobsPerSecond * l.Average * float64(l.RetentionDays) * secondsOfADay * s.storedBytes() / bytesOfAGB
	s.line("DynamoDB", "write units", millions(c.Writes)*p.MillionWrites)
	s.line("DynamoDB", "read units", millions(c.Reads)*p.MillionReads)
	s.line("DynamoDB", "storage and its backup", kept*(GBMonth+GBMonthOfBackup))
	s.line("SQS", "requests", millions(c.Requests)*p.MillionRequests)
	s.line("Lambda", "requests", millions(c.Events+c.Tasks)*p.MillionInvocations)
	s.line("Lambda", "duration", jobs*seconds*p.GBSecond)
	s.line("CloudWatch", "logs", jobs*(c.Events+c.Tasks)*LogBytes/bytesOfAGB*GBOfLogs)
	for _, line := range s.Bill {
		s.Total += line.Dollars
	}
	s.MillionSteps = s.Total / (jobs * float64(l.work())) * 1e6
}

// storedBytes returns the size of a stored job.
func (s *Size) storedBytes() float64 {
	l := s.Load
	steps := float64(l.Steps + l.Waits)
	if l.Items > 0 { // A task is a step of a part.
		steps += float64(l.Items) / float64(l.together())
	}
	bytes := StoredBytes * steps / referenceSteps
	if l.PayloadBytes > SmallBytes {
		bytes += float64((l.Steps + 1) * l.PayloadBytes)
	}
	return max(bytes, StoredBytes/referenceSteps)
}

func (s *Size) line(service, of string, dollars float64) {
	s.Bill = append(s.Bill, Line{service, of, dollars})
}

func (s *Size) over(format string, args ...any) {
	s.Over = append(s.Over, fmt.Sprintf(format, args...))
}

// ceil rounds up. It ignores an excess below the precision of the sums.
func ceil(n float64) int { return int(math.Ceil(n - 1e-9)) }
