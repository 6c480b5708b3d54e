package spend_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
)

// What was due stays due until a save keeps it, and what comes meanwhile stays for the next.
func TestAnAccountKeepsWhatNoSaveHasTaken(t *testing.T) {
	a := spend.NewAccount(nil, job.Spent{Requests: 1})
	a.Add(job.Spent{Writes: 2})
	due := a.Due()
	if want := (job.Spent{Requests: 1, Writes: 2}); due != want {
		t.Errorf("due: got %+v, want %+v", due, want)
	}
	if again := a.Due(); again != due {
		t.Errorf("a save that failed has taken something: got %+v, want %+v", again, due)
	}
	a.Add(job.Spent{HalfReads: 3})
	a.Keep(due)
	if got, want := a.Due(), (job.Spent{HalfReads: 3}); got != want {
		t.Errorf("after the save: got %+v, want %+v", got, want)
	}
}

// Where nothing is counted, nothing has to be asked.
func TestWithoutAnAccountNothingIsCounted(t *testing.T) {
	a := spend.On(t.Context())
	a.Add(job.Spent{Writes: 1})
	a.Keep(job.Spent{Writes: 1})
	a.Store(job.Spent{Writes: 1})
	a.End()
	if a.Due().Counted() || a.Stored().Counted() {
		t.Error("something was counted on no account")
	}
	in := spend.With(t.Context(), spend.NewAccount(nil, job.Spent{}))
	if spend.On(in) == nil || spend.On(spend.Without(in)) != nil {
		t.Error("With and Without do not do what they say")
	}
}

// The shares of a request are whole parts of it, and together the request.
func TestSharesOfARequestAreTheRequest(t *testing.T) {
	for messages := 1; messages <= 10; messages++ {
		if got := spend.Share(1, messages) * int64(messages); got != job.SpentParts {
			t.Errorf("%d messages: together %d parts, want %d", messages, got, job.SpentParts)
		}
	}
	if got := spend.Share(64<<10+1, 1); got != 2*job.SpentParts {
		t.Errorf("a byte more than 64 KB: got %d parts, want those of two requests", got)
	}
}

// The time of a function is shared by those who are under way at each moment, and none of it is lost in a process that
// lives: what nobody was asked for, those pay who come next.
func TestTheTimeOfAFunctionIsShared(t *testing.T) {
	now := time.Unix(0, 0)
	c := spend.NewClock(1024, func() time.Time { return now })
	pass := func(ms int) { now = now.Add(time.Duration(ms) * time.Millisecond) }
	pays := func(what string, turn *spend.Turn, ms int64) {
		t.Helper()
		if got := turn.Take().GBMicros; got != ms*1000 {
			t.Errorf("%s: got %d µs, want %d ms", what, got, ms)
		}
	}
	pass(1000) // Nobody pays for the time between invocations.
	end := c.Invoked()
	pass(4) // before anybody is under way: the first pays
	quick, slow := c.Begin(), c.Begin()
	pass(20)
	pays("quick, half of 20 and what was before", quick, 14)
	quick.End()
	pass(100)
	pays("slow, half of 20, and 100 alone", slow, 110)
	pass(6) // after its save: owed
	slow.End()
	end()
	pass(5000)
	end = c.Invoked()
	next := c.Begin()
	pass(10)
	pays("the next invocation", next, 16)
	pays("asked again at once", next, 0)
	next.End()
	end()
}

func TestAFunctionIsPaidByItsMemory(t *testing.T) {
	now := time.Unix(0, 0)
	c := spend.NewClock(256, func() time.Time { return now })
	defer c.Invoked()()
	turn := c.Begin()
	now = now.Add(50 * time.Millisecond)
	if got := turn.Take().GBMicros; got != 12_500 {
		t.Errorf("50 ms of 256 MB: got %d, want 12500", got)
	}
}
