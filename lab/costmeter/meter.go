// Package costmeter counts what requests to DynamoDB and SQS cost on AWS, as a middleware of the SDK: it
// works out capacity units from the sizes of the items, for the table and for each index, and SQS requests
// from the sizes of the messages. Invocations of functions it is told. So what is counted is the same on every
// stand-in, and does not rest on what one reports.
//
// It knows no prices. It meters tables that are written through it alone, from their first item on: what an
// index pays for a write depends on the item as it was before, of which it keeps a shadow. It keeps all of
// them, so it is for tests and for runs that end.
package costmeter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// The services that are metered, as the SDK names them.
const (
	serviceDynamoDB = "DynamoDB"
	serviceSQS      = "SQS"
	// Lambda is the Service of an invocation.
	Lambda = "Lambda"
)

// Entry is what one request cost. A request that the SDK repeats is an entry each time.
type Entry struct {
	// Service and Operation are the SDK's names; of an invocation, "Lambda" and the function.
	Service, Operation string
	// Table are the write units of the table, Indexes those of each index that was written.
	Table   float64
	Indexes map[string]float64
	// Read are read units, of the table or of an index.
	Read float64
	// Requests are those that SQS bills, one for each 64 KB that were begun; of an invocation, 1.
	Requests int
	// Records are the messages that the request sent, received or deleted, or the function was given.
	Records int
	// Failed: the condition was not met. It is paid for all the same.
	Failed bool
	// Doubt says why the figures may be wrong; empty: they are not.
	Doubt string
	// Reported is what the server said that it cost, if the meter checks, and it said.
	Reported *types.ConsumedCapacity
}

// Write are all write units.
func (e Entry) Write() float64 {
	all := e.Table
	for _, units := range e.Indexes {
		all += units
	}
	return all
}

// Totals are sums over entries.
type Totals struct {
	WriteUnits, ReadUnits float64
	SQSRequests           int
	Invocations           int
}

// Sum adds entries up.
func Sum(entries []Entry) Totals {
	var t Totals
	for _, e := range entries {
		t.WriteUnits += e.Write()
		t.ReadUnits += e.Read
		switch e.Service {
		case serviceSQS:
			t.SQSRequests += e.Requests
		case Lambda:
			t.Invocations += e.Requests
		}
	}
	return t
}

// Config says what is metered.
type Config struct {
	// Tables are the metered tables, as they were made: their keys and indexes are read from it.
	Tables []*dynamodb.CreateTableInput
	// Check has the server asked what each request cost, for comparison.
	Check bool
}

// Meter counts. It may be used by many goroutines at once, as long as no two write one item at the same time:
// it could not tell which was first.
type Meter struct {
	check  bool
	tables map[string]table

	mu      sync.Mutex
	shadow  map[string]item
	entries []Entry
}

// New makes a meter.
func New(c Config) *Meter {
	m := &Meter{check: c.Check, tables: map[string]table{}, shadow: map[string]item{}}
	for _, in := range c.Tables {
		m.tables[aws.ToString(in.TableName)] = newTable(in)
	}
	return m
}

// Watch has every request counted of the clients that are made from c. They ask for images of items beside
// what they were told to, which costs nothing; who calls them does not see these.
func (m *Meter) Watch(c *aws.Config) {
	c.APIOptions = append(slices.Clip(c.APIOptions), func(stack *middleware.Stack) error {
		if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CostmeterAsk", m.initialize), middleware.After); err != nil {
			return fmt.Errorf("costmeter: %w", err)
		}
		// After Retry, so that each try is seen.
		if err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("CostmeterCount", m.finalize), "Retry", middleware.After); err != nil {
			return fmt.Errorf("costmeter: %w", err)
		}
		return nil
	})
}

// Invoked counts an invocation of a function with so many records.
func (m *Meter) Invoked(function string, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, Entry{Service: Lambda, Operation: function, Requests: 1, Records: records})
}

// Take returns the entries since it was last called, in the order of their answers.
func (m *Meter) Take() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.entries
	m.entries = nil
	return all
}

// askedKey is where initialize leaves the question for finalize.
type askedKey struct{}

func (m *Meter) initialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	q := m.ask(in.Parameters)
	in.Parameters = q.input
	out, metadata, err = next.HandleInitialize(middleware.WithStackValue(ctx, askedKey{}, q), in)
	q.hide(out.Result, err)
	return out, metadata, err
}

func (m *Meter) finalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleFinalize(ctx, in)
	q, _ := middleware.GetStackValue(ctx, askedKey{}).(question)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(awsmiddleware.GetServiceID(ctx), q.input, out.Result, err)
	e.Service, e.Operation = awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	m.entries = append(m.entries, e)
	return out, metadata, err
}

// entry works out what a request cost that was answered so.
func (m *Meter) entry(service string, input, output any, err error) Entry {
	switch service {
	case serviceDynamoDB:
		return m.dynamo(input, output, err)
	case serviceSQS:
		return sqsEntry(input, output, err)
	default:
		return Entry{Doubt: "the meter does not know this service"}
	}
}

// Differs says how what the server reported differs from what was worked out; empty: it does not, or nothing was
// reported.
func (e Entry) Differs() string {
	if e.Reported == nil {
		return ""
	}
	reported := Entry{Indexes: map[string]float64{}}
	if e.Reported.Table != nil {
		reported.Table = aws.ToFloat64(e.Reported.Table.CapacityUnits)
	}
	for name, c := range e.Reported.GlobalSecondaryIndexes {
		if units := aws.ToFloat64(c.CapacityUnits); units != 0 {
			reported.Indexes[name] = units
		}
	}
	if e.Read != 0 {
		reported = Entry{Read: aws.ToFloat64(e.Reported.CapacityUnits)}
	}
	same := reported.Table == e.Table && reported.Read == e.Read && maps.Equal(reported.Indexes, e.Indexes)
	if same {
		return ""
	}
	return fmt.Sprintf("%s: the meter has table %v, indexes %v, read %v; the server reported table %v, indexes %v, read %v",
		e.Operation, e.Table, e.Indexes, e.Read, reported.Table, reported.Indexes, reported.Read)
}
