package agentrun_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// What an agent's program does wrong is distinguished from what it was refused, and told with the line at which it went wrong: that of the
// agent, not of the library that it called.
func TestAPanicIsAMistakeWithALine(t *testing.T) {
	var none map[string]int
	var nobody *declined
	for name, c := range map[string]struct {
		does func()
		want string
	}{
		"its own":              {func() { panic("no such box") }, `panic: no such box`},
		"a nil map":            {func() { none["a"] = 1 }, `panic: assignment to entry in nil map`},
		"a nil pointer":        {func() { _ = nobody.why }, `panic: runtime error: invalid memory address or nil pointer dereference`},
		"in Go's own library":  {func() { _ = strings.Repeat("a", -1) }, `panic: strings: negative Repeat count`},
		"a long text":          {func() { panic(strings.Repeat("ü", 2000)) }, "panic: " + strings.Repeat("ü", 490) + "..."},
		"one while it handles": {func() { defer func() { _ = recover(); panic("again") }(); panic("first") }, `panic: again`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
				c.does()
				return nil, nil
			})
			w.wantFailed(w.handle(t.Context(), w.task("pay")))
			got := w.replies()[0].(job.StepFailed).Error
			if got.Kind != makegood.KindPanic || !got.Retryable || got.Applied != makegood.AppliedUnknown {
				t.Errorf("got %+v, want a retryable panic of unknown outcome", got)
			}
			want := "^" + regexp.QuoteMeta(c.want) + ` \(at agentrun/panicked_test\.go:\d+\)$`
			if !regexp.MustCompile(want).MatchString(got.Message) {
				t.Errorf("got %q, want %s", got.Message, want)
			}
		})
	}
}
