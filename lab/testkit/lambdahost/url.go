//go:build linux

package lambdahost

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
)

// URL returns the function's URL, for callers that have one of these keys.
func (f *Function) URL(region string, keys map[string]functionurl.Key) *functionurl.URL {
	return &functionurl.URL{Region: region, Keys: keys, Invoke: func(ctx context.Context, event []byte) ([]byte, error) {
		answer, err := f.Invoke(ctx, event, "")
		if err == nil && answer.Failed {
			return nil, fmt.Errorf("the function failed: %s", answer.Body)
		}
		return answer.Body, err
	}}
}
