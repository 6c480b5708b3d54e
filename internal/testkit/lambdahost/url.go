//go:build linux

package lambdahost

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/testkit/lambdahost/functionurl"
)

// URL returns the function's URL, for whoever has one of these keys; package functionurl says what it does not do.
func (f *Function) URL(region string, keys map[string]functionurl.Key) *functionurl.URL {
	return &functionurl.URL{Region: region, Keys: keys, Invoke: func(ctx context.Context, event []byte) ([]byte, error) {
		answer, err := f.Invoke(ctx, event, "")
		switch {
		case errors.Is(err, ErrThrottled):
			return nil, functionurl.ErrThrottled
		case err == nil && answer.Failed:
			return nil, fmt.Errorf("the function failed: %s", answer.Body)
		}
		return answer.Body, err
	}}
}
