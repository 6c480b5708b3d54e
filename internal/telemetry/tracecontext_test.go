package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// What is no traceparent is none: it is read from whoever submits, so anything may come. A later version is read as far as it is known.
func TestWhatIsNoTraceparentIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "a word": "trace", "too short": good[:54], "too long of this version": good + "-00", "longer by a digit": good + "1",
		"all of the trace zero": "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "all of the span zero": "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"upper case": strings.ToUpper(good), "version ff": "ff" + good[2:], "no hex": strings.Replace(good, "0af7", "0ag7", 1),
		"another separator": strings.ReplaceAll(good, "-", "_"), "spaces": " " + good, "long": good + strings.Repeat("-x", 1<<16),
	} {
		if got := telemetry.ReadTraceparent(text); got.IsValid() {
			t.Errorf("%s: got %s, want none", name, got.TraceID())
		}
		ctx := t.Context()
		if telemetry.Continue(ctx, text) != ctx {
			t.Errorf("%s: the context was changed", name)
		}
	}
	for name, text := range map[string]string{"this version": good, "a later version": "01" + good[2:], "a later version, with more": "01" + good[2:] + "-more", "unsampled": good[:54] + "0"} {
		got := telemetry.ReadTraceparent(text)
		if got.TraceID().String() != good[3:35] || got.SpanID().String() != good[36:52] || got.IsSampled() != strings.Contains(text, "-01") {
			t.Errorf("%s: got %v, want that of %s", name, got, text)
		}
	}
}

// A job keeps a submitter's span in 25 bytes, and what is read of them is what was brought. Bytes of another length are none.
func TestAJobKeepsTheSpanOfItsSubmitter(t *testing.T) {
	stored := telemetry.StoredSpan(telemetry.ReadTraceparent(good))
	j := job.Job{ID: "a", Birth: "b", Trace: stored}
	if got := telemetry.WriteTraceparent(telemetry.Submitter(j)); got != good || len(stored) != 25 {
		t.Errorf("got %s of %d bytes, want %s of 25", got, len(stored), good)
	}
	if got := telemetry.TraceID(j).String(); got != good[3:35] {
		t.Errorf("got trace %s, want the submitter's", got)
	}
	for _, n := range []int{0, 24, 26} {
		if got := telemetry.Submitter(job.Job{Trace: make([]byte, n)}); got.IsValid() {
			t.Errorf("%d bytes: got %v, want none", n, got)
		}
	}
	if telemetry.StoredSpan(trace.SpanContext{}) != nil {
		t.Error("no span is stored as something")
	}
}

// Ids are made from what the job is: the same wherever they are asked for, and another for all that differs.
func TestIDsAreOfTheJob(t *testing.T) {
	j := job.Job{ID: "a", Birth: "b"}
	other := job.Job{ID: "a", Birth: "c"} // The id was used again.
	if got := telemetry.TraceID(j); !got.IsValid() || got != telemetry.TraceID(job.Job{ID: "a", Birth: "b", Rev: 7}) || got == telemetry.TraceID(other) {
		t.Errorf("got trace %s, want one of the job's id and birth", got)
	}
	seen := map[trace.SpanID]string{}
	for name, id := range map[string]trace.SpanID{
		"root": telemetry.RootSpan(j), "of another birth": telemetry.RootSpan(other), "round 2": telemetry.RoundSpan(j, 2), "round 3": telemetry.RoundSpan(j, 3),
		"attempt": telemetry.AttemptSpan(j, "s", 1), "the next": telemetry.AttemptSpan(j, "s", 2), "of another step": telemetry.AttemptSpan(j, "t", 1),
		"mark": telemetry.MarkSpan(j, "end"), "another mark": telemetry.MarkSpan(j, "turn"),
	} {
		if before, taken := seen[id]; taken || !id.IsValid() {
			t.Errorf("%s has the id %s, as %s", name, id, before)
		}
		seen[id] = name
	}
	if telemetry.RoundSpan(j, 1) != telemetry.RootSpan(j) {
		t.Error("the first round is not the submission")
	}
}

// The span that is named stands above that of the context, and a line of a log has the ids of its context's span.
func TestWhatIsUnderASpanSaysSo(t *testing.T) {
	ctx := telemetry.Continue(context.Background(), good)
	if got := telemetry.Under(ctx, ""); got != good {
		t.Errorf("got %q, want the context's", got)
	}
	if got := telemetry.Under(ctx, "other"); got != "other" {
		t.Errorf("got %q, want what was named", got)
	}
	if got := telemetry.Under(context.Background(), ""); got != "" {
		t.Errorf("got %q, want none", got)
	}
	var out bytes.Buffer
	log := slog.New(telemetry.LogLines(slog.NewJSONHandler(&out, nil))).With("job", "a").WithGroup("g")
	log.InfoContext(ctx, "one")
	log.InfoContext(context.Background(), "two")
	one, two, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(one, `"trace_id":"`+good[3:35]+`","span_id":"`+good[36:52]+`"`) || strings.Contains(two, "trace_id") {
		t.Errorf("got %s and %s, want the ids in the first alone", one, two)
	}
}
