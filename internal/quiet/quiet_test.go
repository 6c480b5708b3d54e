package quiet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/makegood-dev/makegood/internal/quiet"
)

// world is a log whose clock the test moves.
type world struct {
	t       *testing.T
	out     bytes.Buffer
	now     time.Time
	handler *quiet.Handler
	*slog.Logger
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(0, 0)}
	plain := slog.NewTextHandler(&w.out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	w.handler = quiet.New(plain, func() time.Time { return w.now })
	w.Logger = slog.New(w.handler)
	return w
}

// wants checks what was written since the last time.
func (w *world) wants(lines ...string) {
	w.t.Helper()
	got := strings.Split(strings.TrimSuffix(w.out.String(), "\n"), "\n")
	if w.out.Len() == 0 {
		got = nil
	}
	if !slices.Equal(got, lines) {
		w.t.Errorf("got  %q\nwant %q", got, lines)
	}
	w.out.Reset()
}

func TestAWarningThatRepeatsIsSaidOnceAMinuteWithHowOftenItWasHeldBack(t *testing.T) {
	w := newWorld(t)
	for i := range 14_052 {
		w.Warn("sweep failed", "error", errors.New("disk full"), "job", i)
	}
	w.wants(`level=WARN msg="sweep failed" error="disk full" job=0`)
	w.now = w.now.Add(quiet.Every - time.Nanosecond)
	w.Error("sweep failed", "job", "x")
	w.wants()
	w.now = w.now.Add(time.Nanosecond)
	w.Warn("sweep failed", "job", "y")
	w.wants(`level=WARN msg="sweep failed" job=y heldBack=14052`)
	w.now = w.now.Add(quiet.Every)
	w.Warn("sweep failed", "job", "z")
	w.wants(`level=WARN msg="sweep failed" job=z`)
}

func TestWarningsDifferByMessageAndByWhomTheyAreAbout(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.Warn("late", "agent", "a")
		w.Warn("late", "agent", "b")
		w.Warn("late", "agent", "a", "kind", "timeout")
		w.With("agent", "c").Warn("late")
		w.With("agent", "c").With("step", "x").Warn("late")
		w.WithGroup("g").Warn("late", "agent", "a")
		w.Warn("early", "agent", "a")
		w.Info("fine", "agent", "a")
	}
	w.wants(
		`level=WARN msg=late agent=a`, `level=WARN msg=late agent=b`, `level=WARN msg=late agent=a kind=timeout`, `level=WARN msg=late agent=c`,
		`level=WARN msg=late agent=c step=x`, `level=WARN msg=late g.agent=a`, `level=WARN msg=early agent=a`,
		`level=INFO msg=fine agent=a`, `level=INFO msg=fine agent=a`,
	)
}

// Nobody need repeat it for its number to be said.
func TestWhatWasHeldBackIsSaidWhenItIsOver(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.With("instance", "i-1").Error("receive failed", "queue", "events", "job", "j")
		w.Warn("once")
	}
	w.out.Reset()
	if err := w.handler.Say(t.Context()); err != nil {
		t.Error(err)
	}
	w.wants()
	w.now = w.now.Add(quiet.Every)
	w.Warn("something else")
	want := []string{
		`level=ERROR msg="receive failed" instance=i-1 queue=events heldBack=2`,
		`level=WARN msg="something else"`,
		`level=WARN msg=once heldBack=2`,
	}
	got := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.out.Reset()
	w.Warn("something else")
	if err := w.handler.SayAll(t.Context()); err != nil {
		t.Error(err)
	}
	w.wants(`level=WARN msg="something else" heldBack=1`)
	if err := w.handler.SayAll(t.Context()); err != nil {
		t.Error(err)
	}
	w.wants()
}

// What would be distinguished beyond the limit counts as one, so the memory is bounded.
func TestManyDifferentWarningsAreBounded(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		for i := range 10 * quiet.MaxWarnings {
			w.Warn("late", "agent", i)
		}
	}
	if lines := strings.Count(w.out.String(), "\n"); lines != quiet.MaxWarnings+1 {
		t.Errorf("%d lines, want %d", lines, quiet.MaxWarnings+1)
	}
	w.out.Reset()
	w.now = w.now.Add(quiet.Every)
	w.Warn("another")
	total := 0
	for line := range strings.Lines(w.out.String()) {
		var held int
		_, number, found := strings.Cut(line, "heldBack=")
		if found {
			if _, err := fmt.Sscan(number, &held); err != nil {
				t.Fatal(err)
			}
		}
		total += held
	}
	if want := 20*quiet.MaxWarnings - quiet.MaxWarnings - 1; total != want {
		t.Errorf("%d are said to be held back, want %d", total, want)
	}
	w.out.Reset()
	w.Warn("late", "agent", 5)
	w.wants(`level=WARN msg=late agent=5`)
}

func TestWhatIsLoudIsNotHeldBack(t *testing.T) {
	w := newWorld(t)
	again := quiet.New(w.handler, time.Now)
	if again != w.handler {
		t.Error("a log that is quiet was made quiet once more")
	}
	loud := quiet.Loud(w.With("a", 1))
	loud.Warn("job changed")
	loud.Warn("job changed")
	w.wants(`level=WARN msg="job changed" a=1`, `level=WARN msg="job changed" a=1`)
	plain := slog.New(slog.DiscardHandler)
	if quiet.Loud(plain) != plain {
		t.Error("a log that holds nothing back is not as it was")
	}
}

func TestManyMayLogAtOnce(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(0, 0)
	log := slog.New(quiet.New(slog.DiscardHandler, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}))
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 1000 {
				log.Warn("late", "agent", (g+i)%10)
			}
		})
	}
	all.Wait()
}

func TestAllElseIsAsTheHandlerBehindHasIt(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return quiet.New(slog.NewJSONHandler(&out, nil), time.Now)
	}, func(t *testing.T) map[string]any {
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}
