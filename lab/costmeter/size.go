package costmeter

import (
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB's and SQS's units, in bytes.
const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10
	sqsChunk  = 64 << 10
)

type item = map[string]types.AttributeValue

// sizeOf is what an item counts for, in bytes, as DynamoDB's documentation has it: names and values in UTF-8,
// a list or map three bytes and one for each element.
func sizeOf(it item) int {
	n := 0
	for name, v := range it {
		n += len(name) + sizeOfValue(v)
	}
	return n
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return sizeOfNumber(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberSS:
		return sizeOfAll(v.Value, func(s string) int { return len(s) })
	case *types.AttributeValueMemberNS:
		return sizeOfAll(v.Value, sizeOfNumber)
	case *types.AttributeValueMemberBS:
		return sizeOfAll(v.Value, func(b []byte) int { return len(b) })
	case *types.AttributeValueMemberL:
		return 3 + len(v.Value) + sizeOfAll(v.Value, sizeOfValue)
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	default: // BOOL and NULL
		return 1
	}
}

func sizeOfAll[V any](all []V, size func(V) int) int {
	n := 0
	for _, v := range all {
		n += size(v)
	}
	return n
}

// sizeOfNumber counts a byte for every two significant digits, and one more, and one for a minus.
func sizeOfNumber(n string) int {
	digits, negative := strings.CutPrefix(n, "-")
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		digits = digits[:i]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.Trim(whole+fraction, "0")
	size := (len(digits)+1)/2 + 1
	if negative {
		size++
	}
	return size
}

// unitsOf rounds bytes up to units, and is at least one: a request is never free.
func unitsOf(bytes, unit int) float64 {
	return max(1, math.Ceil(float64(bytes)/float64(unit)))
}

// readUnits are what reading so many bytes at once costs.
func readUnits(bytes int, consistent *bool) float64 {
	units := unitsOf(bytes, readUnit)
	if consistent == nil || !*consistent {
		units /= 2
	}
	return units
}
