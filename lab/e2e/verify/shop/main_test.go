package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/sample/services"
)

func TestARequestToTheFunctionIsOneToTheShop(t *testing.T) {
	ask := handler(services.Handler(services.Options{}))
	send := func(method, path, body string) events.LambdaFunctionURLResponse {
		in := events.LambdaFunctionURLRequest{RawPath: path, Body: body, Headers: map[string]string{
			"idempotency-key": "o-1/reserve/1", "makegood-attempt": "1", "content-type": "application/json",
		}}
		in.RequestContext.HTTP.Method = method
		out, err := ask(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 2 {
		if got := send("POST", "/inventory/reserve", `{"order":"o-1","amount":12.5}`); got.StatusCode != 200 || got.Headers["Content-Type"] != "application/json" {
			t.Fatalf("got %+v, want 200 with JSON", got)
		}
	}
	if got := send("POST", "/nowhere", ""); got.StatusCode != 404 {
		t.Errorf("got %+v, want 404", got)
	}
	var ledger services.Ledger
	got := send("GET", "/ledger", "")
	if err := json.Unmarshal([]byte(got.Body), &ledger); err != nil {
		t.Fatalf("%v in %s", err, got.Body)
	}
	if n := len(ledger.Effects); n != 1 || fmt.Sprint(ledger.Requests["o-1/reserve/1"]) != "map[1:2]" {
		t.Errorf("the ledger has %d effects and requests %v, want one of the two requests", n, ledger.Requests)
	}
}
