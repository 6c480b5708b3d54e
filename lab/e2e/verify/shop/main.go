// Command shop is the sample shop as a Lambda function behind a function URL, for make aws-verify: functions in an
// account cannot reach a shop on a laptop. All its books are in memory, so it must be one environment at most. It
// never hangs: a function is not told when its caller has gone.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/makegood-dev/makegood/internal/sample/services"
)

// seedVariable holds the seed of the shop's faults.
const seedVariable = "SHOP_SEED"

func main() {
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "shop: %s: %v\n", seedVariable, err)
		os.Exit(1)
	}
	script := services.Script{Profile: services.FaultsSome, Seed: seed}
	lambda.Start(handler(services.Handler(services.Options{Script: script.Answering()})))
}

// handler answers a request to the function's URL as an HTTP server would.
func handler(shop http.Handler) func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	return func(ctx context.Context, in events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		body := []byte(in.Body)
		if in.IsBase64Encoded {
			var err error
			if body, err = base64.StdEncoding.DecodeString(in.Body); err != nil {
				return events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest, Body: err.Error()}, nil
			}
		}
		request, err := http.NewRequestWithContext(ctx, in.RequestContext.HTTP.Method, in.RawPath, bytes.NewReader(body))
		if err != nil {
			return events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest, Body: err.Error()}, nil
		}
		for name, value := range in.Headers {
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		shop.ServeHTTP(answer, request)
		headers := map[string]string{}
		for name := range answer.Header() {
			headers[name] = answer.Header().Get(name)
		}
		return events.LambdaFunctionURLResponse{StatusCode: answer.Code, Headers: headers, Body: answer.Body.String()}, nil
	}
}
