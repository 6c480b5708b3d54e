package api

import "context"

type whoKey struct{}

// As returns a context that names the caller of its requests: a name of at most 128 bytes, stored with the changes
// where the engine knows no better name. The name proves no identity: a stack stores the ARN of the signature instead,
// and an engine with Options.Caller the result of that.
func As(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// Who returns the caller that As set last; empty: none.
func Who(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	return who
}
