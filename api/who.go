package api

import "context"

type whoKey struct{}

// As returns a context whose requests say who asks: a name of at most 128 bytes, kept with what they change
// where nobody can know better. It is what they say, and proves nothing: a stack keeps the ARN that signed instead, and an
// engine whose Options.Caller is set what that returns.
func As(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// Who is what As was told last; empty: nothing.
func Who(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	return who
}
