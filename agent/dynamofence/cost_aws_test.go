//go:build aws

package dynamofence_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent/dynamofence"
)

// metered asks what its transactions have cost, and adds it up by table.
type metered struct {
	*dynamodb.Client
	spent map[string]float64
}

func (m *metered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.TransactWriteItems(ctx, in, options...)
	if err == nil {
		for _, c := range out.ConsumedCapacity {
			m.spent[aws.ToString(c.TableName)] += aws.ToFloat64(c.CapacityUnits)
		}
	}
	return out, err
}

// What docs/fence.md and docs/cost.md say of units: those of the claim's table, and of the table with the effect and one
// small item of the agent's own.
func TestWhatATransactionTakes(t *testing.T) {
	s := newStack(t)
	m := &metered{Client: s.client}
	fence, err := dynamofence.New(dynamofence.Config{Client: m, Effects: s.own})
	if err != nil {
		t.Fatal(err)
	}
	s.fence = fence
	took := func(what string, claims, own float64) {
		t.Helper()
		if m.spent[s.table] != claims || m.spent[s.own] != own {
			t.Errorf("%s took %v units of the claims and %v of its own, want %v and %v", what, m.spent[s.table], m.spent[s.own], claims, own)
		}
		m.spent = map[string]float64{}
	}
	m.spent = map[string]float64{}
	s.holds(s.task("a", 1))
	if _, err := s.pay(s.task("a", 1)); err != nil {
		t.Fatal(err)
	}
	took("an effect", 2, 4)
	s.holds(s.undo("a", 2, makegood.OutcomeDone))
	if err := s.refund(s.undo("a", 2, makegood.OutcomeDone)); err != nil {
		t.Fatal(err)
	}
	took("its undo", 2, 4)
	s.holds(s.undo("b", 2, makegood.OutcomeUnknown))
	if err := s.refund(s.undo("b", 2, makegood.OutcomeUnknown)); err != nil {
		t.Fatal(err)
	}
	took("the undo of what never happened", 2, 2)
}
