package supervisor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

// index has one shard of deadlines and one of beginnings.
type index struct {
	deadlines, beginnings []store.Entry
}

func (i *index) Shards() int                 { return 2 }
func (i *index) OfBeginnings(shard int) bool { return shard == 1 }

func (i *index) Due(_ context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	return memstore.Due(slices.Values([][]store.Entry{i.deadlines, i.beginnings}[shard]), now, after, limit), nil
}

// sent is what was sent: the names by their delays.
type sent struct {
	messages map[string][]time.Duration
	waiting  int
}

func (s *sent) Depth(context.Context, string) (queue.Depth, error) {
	return queue.Depth{Waiting: s.waiting}, nil
}

func (s *sent) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	for _, m := range messages {
		in, err := wire.DecodeIncoming(m.Body)
		if err != nil {
			return []error{err}
		}
		name := in.Job
		if in.Schedule != nil {
			name = in.Schedule.Schedule
		}
		s.messages[name] = append(s.messages[name], m.Delay)
	}
	return nil
}

// lookout is a Supervisor that looks three minutes ahead, and a clock.
func lookout(t *testing.T, i *index, change func(*supervisor.Config)) (s *supervisor.Supervisor, out *sent, now *time.Time) {
	t.Helper()
	now, out = new(noon), &sent{messages: map[string][]time.Duration{}}
	c := supervisor.Config{
		Index: i, Queue: out, Events: "events", Ahead: 3 * time.Minute, Places: memstore.New(), Now: func() time.Time { return *now },
	}
	if change != nil {
		change(&c)
	}
	return supervisor.New(c), out, now
}

func (s *sent) want(t *testing.T, want map[string][]time.Duration) {
	t.Helper()
	if fmt.Sprint(s.messages) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", s.messages, want)
	}
	clear(s.messages)
}

func sweep(t *testing.T, s *supervisor.Supervisor) supervisor.Result {
	t.Helper()
	r, err := s.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func begins(after time.Duration, job string) store.Entry {
	return store.Entry{CompleteBy: noon.Add(after), Job: job}
}

// What begins within three minutes is told of by a delayed message, once; deadlines are not looked at before they come.
func TestWhatIsAboutToBeginIsToldOfOnceWithADelay(t *testing.T) {
	i := &index{
		deadlines: []store.Entry{begins(-time.Second, "late"), begins(time.Minute, "soon-late")},
		beginnings: []store.Entry{
			begins(-time.Minute, "began"), begins(90*time.Second+300*time.Millisecond, "a"), begins(3*time.Minute, "b"), begins(3*time.Minute+1, "c"),
			{CompleteBy: noon.Add(2 * time.Minute), Schedule: "tick"},
		},
	}
	s, out, now := lookout(t, i, nil)
	r := sweep(t, s)
	if want := (supervisor.Result{Overdue: 2, Sent: 5, Ahead: 3}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	out.want(t, map[string][]time.Duration{
		"late": {0}, "began": {0}, "a": {91 * time.Second}, "tick": {121 * time.Second}, "b": {181 * time.Second},
	})
	*now = noon.Add(time.Minute)
	i.beginnings = append(i.beginnings, begins(3*time.Minute+30*time.Second, "d"), begins(time.Minute+5*time.Second, "reminded of by who stored it"))
	sweep(t, s)
	out.want(t, map[string][]time.Duration{
		"late": {0}, "soon-late": {0}, "began": {0}, "c": {121 * time.Second}, "d": {151 * time.Second},
		"b": {121 * time.Second}, // within what is looked at twice, since an index may lag
	})
	if got := s.Stats().Ahead; got != 6 {
		t.Errorf("got %d in all, want 6", got)
	}
}

// A sweep that does not come to its end is gone on with by the next one, also where all keys are the same.
func TestALookAheadGoesOnWhereTheOneBeforeHeldBack(t *testing.T) {
	i := &index{}
	for n := range 500 {
		i.beginnings = append(i.beginnings, begins(150*time.Second, fmt.Sprintf("job-%03d", n)))
	}
	places := memstore.New()
	all := map[string]int{}
	for round := range 3 {
		// Each is another process: what it knows is in the place.
		s, out, now := lookout(t, i, func(c *supervisor.Config) { c.Page, c.MaxPages, c.Places = 100, 2, places })
		*now = noon.Add(time.Duration(round) * time.Second)
		r := sweep(t, s)
		if want := []int{200, 200, 100}[round]; r.Ahead != want {
			t.Errorf("round %d: got %d, want %d", round, r.Ahead, want)
		}
		for name, delays := range out.messages {
			all[name] += len(delays)
		}
	}
	if len(all) != 500 {
		t.Errorf("told of %d, want 500", len(all))
	}
	for name, times := range all {
		if times != 1 {
			t.Errorf("%s was told of %d times, want once", name, times)
		}
	}
}

// A sweep that was late, or did not come at all for a while, leaves nothing out: what has begun meanwhile is overdue.
func TestAfterAGapInTheSweepsNothingIsLeftOut(t *testing.T) {
	i := &index{beginnings: []store.Entry{begins(10*time.Minute, "a"), begins(21*time.Minute, "b")}}
	s, out, now := lookout(t, i, nil)
	sweep(t, s)
	*now = noon.Add(20 * time.Minute)
	sweep(t, s)
	out.want(t, map[string][]time.Duration{"a": {0}, "b": {61 * time.Second}})
	*now = noon // a clock that is put back
	i.beginnings = []store.Entry{begins(time.Minute, "c")}
	sweep(t, s)
	out.want(t, map[string][]time.Duration{"c": {61 * time.Second}})
}

// Above the depth nothing is sent, ahead neither, and the place stays.
func TestALookAheadHoldsBackWhereTheQueueIsDeep(t *testing.T) {
	i := &index{beginnings: []store.Entry{begins(time.Minute, "a")}}
	s, out, _ := lookout(t, i, nil)
	out.waiting = supervisor.DefaultDepth + 1
	if r := sweep(t, s); !r.Braked || r.Sent != 0 {
		t.Errorf("got %+v, want it held back", r)
	}
	out.waiting = 0
	sweep(t, s)
	out.want(t, map[string][]time.Duration{"a": {61 * time.Second}})
}

// Where a shard is another's, its lookout is another's, too.
func TestALookAheadLeavesAShardToWhoHasLeasedIt(t *testing.T) {
	i := &index{beginnings: []store.Entry{begins(time.Minute, "a")}}
	leases := memstore.New()
	s, out, now := lookout(t, i, func(c *supervisor.Config) { c.Leases, c.Holder = leases, "me" })
	if err := leases.TakeLease(t.Context(), "sweep-1", "another", noon, noon.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	sweep(t, s)
	out.want(t, nil)
	*now = noon.Add(time.Second)
	sweep(t, s)
	out.want(t, map[string][]time.Duration{"a": {60 * time.Second}})
}
