package docs

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/domain"
)

// The workflow that docs/schedules.md shows, with its schedules: they fire when the page says, and make jobs that end well.
func TestTheExampleOfASchedulePutsItsJobsThrough(t *testing.T) {
	source := blocks(read(t, "docs/schedules.md"), "yaml")[0]
	synctest.Test(t, func(t *testing.T) {
		var days []string
		eng, err := engine.Open(t.Context(), engine.Options{
			Workflows: fstest.MapFS{"report.yaml": {Data: []byte(source)}},
			Agents: []agent.Handler{
				agent.New("books", agent.Do("collect", func(context.Context, map[string]any) (string, error) { return "all is well", nil })),
				agent.New("mail", agent.Do("send", func(_ context.Context, in map[string]any) (string, error) {
					if day, ok := in["day"].(string); ok {
						days = append(days, day)
					}
					return "", nil
				})),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- eng.Run(ctx) }()
		fires, err := eng.NextFires(t.Context(), "nightly", 1)
		if err != nil || len(fires) != 1 {
			t.Fatalf("got %v, %v", fires, err)
		}
		time.Sleep(time.Until(fires[0]) - time.Second)
		if _, err := eng.PauseSchedule(t.Context(), "poll"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		job, err := eng.Wait(t.Context(), domain.FireID("nightly", fires[0]))
		if err != nil || job.ProcessState != makegood.JobProcessed || len(days) == 0 || days[len(days)-1] != fires[0].Format(time.DateOnly) {
			t.Errorf("got %s, %v, and %q", job.ProcessState, err, days)
		}
		s, err := eng.GetSchedule(t.Context(), "poll")
		if err != nil || s.PausedAt == nil || !strings.HasPrefix(s.LastJob, "poll:") {
			t.Errorf("got %+v, %v", s, err)
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
}
