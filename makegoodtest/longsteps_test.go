package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// studio renders films, one reel an hour, and remembers which it has: a next attempt goes on there.
type studio struct {
	*Fake
	reels map[string]int
	// reel is how long one takes.
	reel time.Duration
}

func (s *studio) agent() *agent.Agent {
	return agent.New("studio",
		agent.Do("render", s.render).Undo("delete", func(ctx context.Context, _ film, _ *string) error {
			return s.Undo(ctx, "delete", agent.TaskOf(ctx).Undo.ForwardKey)
		}),
		agent.Do("publish", func(ctx context.Context, in film) (string, error) {
			return "published", s.Do(ctx, "publish", agent.TaskOf(ctx).Key)
		}),
	)
}

type film struct {
	Film string `json:"film"`
}

func (s *studio) render(ctx context.Context, in film) (string, error) {
	defer agent.KeepAlive(ctx)()
	key := agent.TaskOf(ctx).Key
	for s.reels[key] < 6 {
		select {
		case <-time.After(s.reel):
			s.reels[key]++
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if err := agent.Progress(ctx, map[string]int{"reel": s.reels[key], "of": 6}); errors.Is(err, agent.ErrOver) || errors.Is(err, agent.ErrWithdrawn) {
			return "", err
		}
	}
	return "s3://films/" + in.Film, s.Do(ctx, "render", key)
}

// voyage is the workflow of docs/long-steps.md, at a new studio for every run, whose reels take so long.
func voyage(t *testing.T, reel time.Duration) Case {
	t.Helper()
	text, err := os.ReadFile("../docs/long-steps.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	workflow, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/long-steps.md shows no workflow")
	}
	return Case{
		YAML:   []byte(workflow),
		Input:  film{"voyage"},
		Within: 48 * time.Hour,
		Services: func() Services {
			s := &studio{NewFake("studio"), map[string]int{}, reel}
			return Services{
				Agents: []agent.Handler{s.agent()}, Ledger: s.Ledger,
				Check: func(job Job) error {
					if job.ProcessState != makegood.JobProcessed || s.Stands("render") != 1 || s.Stands("publish") != 1 {
						return fmt.Errorf("%s, and the studio has rendered %d and published %d", job.ProcessState, s.Stands("render"), s.Stands("publish"))
					}
					return noneTwice(job)
				},
			}
		},
	}
}

// noneTwice: nothing runs twice under one attempt.
func noneTwice(job Job) error {
	seen := map[string]bool{}
	for _, a := range job.Attempts {
		which := fmt.Sprintf("%s#%d", a.Step, a.Attempt)
		if seen[which] {
			return fmt.Errorf("attempt %s ran twice", which)
		}
		seen[which] = true
	}
	return nil
}

// Six hours of work, in one attempt: no timeout, no visibility and no look ends it.
func TestAStepTakesSixHours(t *testing.T) {
	job := Run(t, voyage(t, time.Hour))
	if job.ProcessState != makegood.JobProcessed || job.Order() != "render publish" || job.FailureCount != 0 {
		t.Errorf("got %s after %q with %d failures, want Processed after one attempt each", job.ProcessState, job.Order(), job.FailureCount)
	}
}

// strikesOf are those that a run of a case can meet, but for looking round, which the Supervisor does twice a second.
func strikesOf(t *testing.T, c Case, pick func(s strike, last int) bool) (all []strike) {
	t.Helper()
	strikes := allStrikes(t, c)
	last := map[string]int{}
	for _, s := range strikes {
		last[s.name] = max(last[s.name], s.n)
	}
	for _, s := range strikes {
		if s.name != "Due" && pick(s, last[s.name]) {
			all = append(all, s)
		}
	}
	return all
}

func strikeAll(t *testing.T, c Case, strikes []strike) {
	t.Helper()
	var found violations
	for _, s := range strikes {
		if report := crashRun(t, c, s); report != "" {
			found.run(report, "strike "+s.String(), s.String())
		}
		if found.enough() {
			break
		}
	}
	t.Logf("%d runs", len(strikes))
	found.fail(t)
}

// The six hours with the engine killed in the middle of them, before and after what keeps such a step alive.
func TestAStepOfSixHoursSurvivesAKillInTheMiddle(t *testing.T) {
	if testing.Short() {
		t.Skip("runs of six hours take a second each")
	}
	c := voyage(t, time.Hour)
	strikeAll(t, c, strikesOf(t, c, func(s strike, last int) bool {
		return slices.Contains([]string{"Heartbeat", "Look", "Save"}, s.name) && s.n == (last+1)/2 && (s.effect == faultstore.CrashBefore || s.effect == faultstore.CrashAfter)
	}))
}

// The same in minutes for hours: killed before and after every call, every call failed; every heartbeat, every look.
func TestALongStepSurvivesEveryKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it tries every call: make whole")
	}
	c := voyage(t, time.Minute)
	c.YAML = []byte(strings.NewReplacer("12h", "12m", "10m", "1m").Replace(string(c.YAML)))
	c.Within = time.Hour
	strikeAll(t, c, strikesOf(t, c, func(strike, int) bool { return true }))
}
