package notify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
)

var errDeaf = errors.New("deaf")

type deaf struct{}

func (deaf) Announce(context.Context, notify.Notice) error    { return errDeaf }
func (deaf) AgentAlert(context.Context, string, string) error { return errDeaf }

func TestAllAreToldThoughOneIsDeaf(t *testing.T) {
	var first, last bytes.Buffer
	log := func(to *bytes.Buffer) notify.Notifier {
		return notify.Log{Logger: slog.New(slog.NewTextHandler(to, nil))}
	}
	all := notify.All(log(&first), deaf{}, log(&last))
	notice := notify.Notice{Job: "order-1", Announcement: job.Announcement{Seq: 2, ProcessState: makegood.JobError}}
	if err := all.Announce(t.Context(), notice); !errors.Is(err, errDeaf) {
		t.Errorf("announce: got %v, want %v", err, errDeaf)
	}
	if err := all.AgentAlert(t.Context(), "payments", ""); !errors.Is(err, errDeaf) {
		t.Errorf("alert: got %v, want %v", err, errDeaf)
	}
	for _, got := range []string{first.String(), last.String()} {
		if !strings.Contains(got, "job=order-1") || !strings.Contains(got, "agent=payments") {
			t.Errorf("got %q, want both the job and the agent", got)
		}
	}
	if err := notify.All().Announce(t.Context(), notice); err != nil {
		t.Errorf("nobody to tell: got %v, want success", err)
	}
}

// hanging answers nobody, as a service does that takes a connection and says nothing.
type hanging struct{}

func (hanging) Announce(ctx context.Context, _ notify.Notice) error { return waitFor(ctx) }
func (hanging) AgentAlert(ctx context.Context, _, _ string) error   { return waitFor(ctx) }

func waitFor(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWhoHangsIsGivenUpAfterPatienceAndTheOthersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard bytes.Buffer
		all := notify.All(hanging{}, notify.Log{Logger: slog.New(slog.NewTextHandler(&heard, nil))}, hanging{})
		start := time.Now()
		err := all.Announce(t.Context(), notify.Notice{Job: "order-1"})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(heard.String(), "job=order-1") {
			t.Errorf("announce: got %v and heard %q, want a deadline that passed, and the job", err, heard.String())
		}
		if err := all.AgentAlert(t.Context(), "payments", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("alert: got %v, want a deadline that passed", err)
		}
		if took := time.Since(start); took != 2*notify.Patience {
			t.Errorf("two tellings took %s, want %s each", took, notify.Patience)
		}
	})
}
