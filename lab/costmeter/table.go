package costmeter

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table is what the rules need to know of one.
type table struct {
	name    string
	key     []string
	indexes []index
}

// index is a global secondary index.
type index struct {
	name string
	key  []string
	// projected are the attributes that its entries have, keys included; all: the whole item.
	projected []string
	all       bool
}

func newTable(in *dynamodb.CreateTableInput) table {
	t := table{name: aws.ToString(in.TableName), key: keyNames(in.KeySchema)}
	for _, g := range in.GlobalSecondaryIndexes {
		i := index{name: aws.ToString(g.IndexName), key: keyNames(g.KeySchema)}
		i.projected = append(append(i.projected, t.key...), i.key...)
		if g.Projection != nil {
			i.projected = append(i.projected, g.Projection.NonKeyAttributes...)
			i.all = g.Projection.ProjectionType == types.ProjectionTypeAll
		}
		t.indexes = append(t.indexes, i)
	}
	return t
}

func keyNames(schema []types.KeySchemaElement) []string {
	var names []string
	for _, k := range schema {
		names = append(names, aws.ToString(k.AttributeName))
	}
	return names
}

// id names an item among all of all tables; ok is false if its key is not whole.
func (t table) id(it item) (id string, ok bool) {
	parts := []string{t.name}
	for _, name := range t.key {
		switch v := it[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, "S"+v.Value)
		case *types.AttributeValueMemberN:
			parts = append(parts, "N"+v.Value)
		case *types.AttributeValueMemberB:
			parts = append(parts, fmt.Sprintf("B%x", v.Value))
		default:
			return "", false
		}
	}
	return strings.Join(parts, "\x00"), true
}

// write returns what it costs to make before into after, either of which may be nil: the larger of the two for
// the table, and for each index what changes of its entry.
func (t table) write(before, after item) (units float64, indexes map[string]float64) {
	indexes = map[string]float64{}
	for _, i := range t.indexes {
		if n := i.write(before, after); n > 0 {
			indexes[i.name] = n
		}
	}
	return unitsOf(max(sizeOf(before), sizeOf(after)), writeUnit), indexes
}

// write of an index: an entry that comes or goes is a write; one whose key changes goes and comes; one of which
// nothing changes costs nothing.
func (i index) write(before, after item) float64 {
	old, now := i.entry(before), i.entry(after)
	switch {
	case old == nil && now == nil:
		return 0
	case old == nil || now == nil:
		return unitsOf(sizeOf(old)+sizeOf(now), writeUnit)
	case !i.sameKey(old, now):
		return unitsOf(sizeOf(old), writeUnit) + unitsOf(sizeOf(now), writeUnit)
	case reflect.DeepEqual(old, now):
		// A set that came back in another order counts as changed: too much rather than too little.
		return 0
	default:
		return unitsOf(max(sizeOf(old), sizeOf(now)), writeUnit)
	}
}

// entry is what the index holds of an item; nil: it is not in it.
func (i index) entry(it item) item {
	for _, name := range i.key {
		if _, ok := it[name]; !ok {
			return nil
		}
	}
	if i.all {
		return it
	}
	entry := item{}
	for _, name := range i.projected {
		if v, ok := it[name]; ok {
			entry[name] = v
		}
	}
	return entry
}

func (i index) sameKey(a, b item) bool {
	for _, name := range i.key {
		if !reflect.DeepEqual(a[name], b[name]) {
			return false
		}
	}
	return true
}

// index returns the index of a name.
func (t table) index(name string) (index, bool) {
	for _, i := range t.indexes {
		if i.name == name {
			return i, true
		}
	}
	return index{}, false
}
