package deployed

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

// traceKey is under which the Lambda runtime for Go keeps the X-Ray trace header of an invocation. The
// SDK hands the header on with every request, and SQS with every message.
const traceKey = "x-amzn-trace-id"

// newLog logs in JSON, each line with the request and the trace of its invocation, so that the lines of
// one job can be joined over the functions: by job, and by trace from hop to hop. A warning that repeats is
// said once a minute by each instance of a function.
func newLog(out io.Writer, level slog.Level, function string) *slog.Logger {
	lines := invocationLog{slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})}
	return slog.New(quiet.New(telemetry.LogLines(lines), time.Now)).With("function", function)
}

// invocationLog adds the attributes of the invocation.
type invocationLog struct{ slog.Handler }

// Handle adds it to a record.
func (h invocationLog) Handle(ctx context.Context, r slog.Record) error {
	if invocation, ok := lambdacontext.FromContext(ctx); ok && invocation.AwsRequestID != "" {
		r.AddAttrs(slog.String("requestId", invocation.AwsRequestID))
	}
	if trace, ok := ctx.Value(traceKey).(string); ok && trace != "" {
		r.AddAttrs(slog.String("trace", trace))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the attributes of this handler.
func (h invocationLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return invocationLog{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the attributes of this handler.
func (h invocationLog) WithGroup(name string) slog.Handler {
	return invocationLog{h.Handler.WithGroup(name)}
}
