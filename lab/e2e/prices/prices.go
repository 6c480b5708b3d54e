// Package prices has the list prices of AWS by which lab/e2e/cost prices what it counts and lab/e2e/template what a
// stack costs idle. They are in dollars, without free tiers and savings plans. A test compares them with those by which
// the product prices what jobs have cost (makegood.ListPrices).
package prices

// Date is when they were looked up, and Region where they hold.
const (
	Date   = "2026-11-20"
	Region = "us-east-1"
)

const (
	// MillionWrites are write units of 1 KB, MillionReads read units of 4 KB, of a DynamoDB table on demand.
	MillionWrites = 0.625
	MillionReads  = 0.125
	// MillionRequests are requests to a standard queue, for each 64 KB of them.
	MillionRequests = 0.40
	// MillionInvocations are of Lambda, and GBSecond is their duration, on arm64.
	MillionInvocations = 0.20
	GBSecond           = 0.0000133334
	// MillionEvents are put on a bus of EventBridge, for each 64 KB of them.
	MillionEvents = 1.00
	// GBOfLogs are taken in by CloudWatch, Metric is one of ours for a month, MillionTraces are of X-Ray.
	GBOfLogs      = 0.50
	Metric        = 0.30
	MillionTraces = 5.00
	// GBMonth is of a DynamoDB table, GBMonthOfBackup of its backups to a point in time.
	GBMonth         = 0.25
	GBMonthOfBackup = 0.20
)
