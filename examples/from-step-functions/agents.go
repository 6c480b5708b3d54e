package order

import (
	"context"
	"encoding/json"

	"github.com/makegood-dev/makegood/agent"
)

// Agents do the steps of the workflow order. They were made by makegood-import: an agent that answers with its
// input is a stub. Put your call in its place, with agent.TaskOf(ctx).Key, so that the same call twice has one effect.
var Agents = []agent.Handler{
	functions,
	sns,
}

var functions = agent.New("functions",
	agent.Do("reserve_stock", reserveStock),
	agent.Do("charge_card", chargeCard),
	agent.Do("ship_parcel", shipParcel),
	agent.Undo("release_stock", releaseStock),
	agent.Undo("refund_card", refundCard),
)

// It does the step reserve_stock, which was the Task Reserve Stock.
// In the state machine it called the Lambda function ReserveStock.
func reserveStock(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
	return in, nil // a stub
}

// It does the step charge_card, which was the Task Charge Card.
// In the state machine it called the Lambda function ChargeCard.
func chargeCard(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
	return in, nil // a stub
}

// It does the step ship_parcel, which was the Task Ship Parcel.
// In the state machine it called the Lambda function ShipParcel.
func shipParcel(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
	return in, nil // a stub
}

// It undoes the step reserve_stock, as the Task Release Stock did.
// done is nil where nobody knows whether the step was done; that there is nothing to undo is success.
func releaseStock(_ context.Context, in json.RawMessage, done *json.RawMessage) error {
	return nil // a stub
}

// It undoes the step charge_card, as the Task Refund Card did.
// done is nil where nobody knows whether the step was done; that there is nothing to undo is success.
func refundCard(_ context.Context, in json.RawMessage, done *json.RawMessage) error {
	return nil // a stub
}

var sns = agent.New("sns",
	agent.Do("publish", publish),
)

// It does the step tell_customer, which was the Task Tell Customer.
// In the state machine it called the integration sns:publish.
func publish(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
	return in, nil // a stub
}
