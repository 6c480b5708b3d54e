package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func raceRules() []rule {
	return []rule{
		{"saves of many goroutines lose nothing", nothingLostInARace},
		{"of many concurrent claims of an attempt exactly one wins", oneConcurrentClaim},
		{"of a claim and a close that finds nobody exactly one wins", claimOrNobody},
		{"of a heartbeat and a close that finds silence exactly one wins", heartbeatOrSilence},
		{"of a failure reply and a close that finds silence exactly one wins", replyOrSilence},
		{"attempts that many goroutines claim, extend and close have one holder each, and none once they are closed", oneHolderEach},
	}
}

// raceRounds is how often calls meet that meet by chance.
const raceRounds = 20

func oneConcurrentClaim(w *world) {
	const many = 16
	s := w.scene("a")
	errs := atOnce(many, func(i int) error {
		return w.store.Claim(w.ctx, s.slot, w.claim(1, fmt.Sprint("agent/", i), time.Minute), s.until)
	})
	won := winners(w, errs, store.ErrTaken)
	s.looks(1, 0, s.found(job.FoundHeld, 1, fmt.Sprint("agent/", won), time.Minute))
}

// meet lets two kinds of callers meet in a new slot, many of each, and returns their answers.
func meet(w *world, round int, prepare func(s *scene), calls ...func(s *scene) answer) (s *scene, answers []answer) {
	const each = 4
	s = w.scene(fmt.Sprint("round-", round))
	prepare(s)
	answers = make([]answer, each*len(calls))
	atOnce(len(answers), func(i int) error {
		answers[i] = calls[i%len(calls)](s)
		return nil
	})
	return s, answers
}

func (s *scene) askClose(c store.Closing) answer {
	found, err := s.store.Close(s.ctx, s.slot, c)
	return answer{found: found, err: err}
}

func claimOrNobody(w *world) {
	for round := range raceRounds {
		var held atomic.Int64
		s, answers := meet(w, round, func(*scene) {},
			func(s *scene) answer {
				err := s.store.Claim(s.ctx, s.slot, s.claim(1, fmt.Sprint("agent/", held.Add(1)), time.Hour), s.until)
				return answer{err: err}
			},
			func(s *scene) answer { return s.askClose(s.closing(1, 0)) },
		)
		claimed, closed, withdrawn := 0, 0, 0
		for i, a := range answers {
			switch claims := i%2 == 0; {
			case claims && a.err == nil:
				claimed++
			case claims && errors.Is(a.err, store.ErrWithdrawn):
				withdrawn++
			case !claims && a.found.Finding == job.FoundNobody:
				closed++
			}
		}
		if (claimed == 1) == (closed > 0) || claimed > 1 || (withdrawn > 0) != (closed > 0) {
			w.Fatalf("round %d: %d claims held, %d were withdrawn and %d closings found nobody: %+v", round, claimed, withdrawn, closed, answers)
		}
		if closed == 0 {
			s.closes(s.closing(1, time.Hour), job.Found{Finding: job.FoundSilent, Claim: answers[1].found.Claim})
		}
	}
}

func heartbeatOrSilence(w *world) {
	for round := range raceRounds {
		_, answers := meet(w, round,
			func(s *scene) { s.claims(1, "x", time.Minute, nil) },
			func(s *scene) answer {
				completeBy, err := s.store.Heartbeat(s.ctx, s.slot, s.claim(1, "x", time.Hour), s.until)
				return answer{completeBy: completeBy, err: err}
			},
			func(s *scene) answer { return s.askClose(s.closing(1, time.Minute)) },
		)
		extended, silent := 0, 0
		for i, a := range answers {
			switch heartbeats := i%2 == 0; {
			case heartbeats && a.err == nil:
				extended++
			case !heartbeats && a.found.Finding == job.FoundSilent:
				silent++
			}
		}
		if (extended > 0) == (silent > 0) {
			w.Fatalf("round %d: %d heartbeats held and %d closings found silence: %+v", round, extended, silent, answers)
		}
	}
}

func replyOrSilence(w *world) {
	for round := range raceRounds {
		s, answers := meet(w, round,
			func(s *scene) { s.claims(1, "x", time.Minute, nil) },
			func(s *scene) answer { return s.askClose(s.replied(1, "x")) },
			func(s *scene) answer { return s.askClose(s.closing(1, time.Minute)) },
		)
		first := answers[0].found.Finding
		if first != job.FoundReplied && first != job.FoundSilent {
			w.Fatalf("round %d: a failure reply found %q", round, first)
		}
		for i, a := range answers {
			want := job.FoundSilent
			if i%2 == 0 {
				want = first
			}
			if a.err != nil || a.found != s.found(want, 1, "x", time.Minute) {
				w.Fatalf("round %d, call %d: got %+v, want %s", round, i, a, want)
			}
		}
	}
}

// oneHolderEach: agents claim and extend the newest attempt while others close it and open the next.
func oneHolderEach(w *world) {
	const agents, closers, rounds = 6, 3, 15
	r := &race{scene: w.scene("a"), holder: map[int]string{}, closed: map[int]job.Finding{}}
	r.newest.Store(1)
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() { r.agent(fmt.Sprint("agent/", i), rounds) })
	}
	for i := range closers {
		all.Go(func() { r.closer(i, rounds) })
	}
	all.Wait()
	for attempt, finding := range r.closed {
		if holder := r.holder[attempt]; (holder == "") != (finding == job.FoundNobody) {
			w.Errorf("attempt %d was closed as %s, and %q was told that it holds it", attempt, finding, holder)
		}
	}
}

// race is the answers to all calls.
type race struct {
	*scene
	newest atomic.Int64
	mu     sync.Mutex
	holder map[int]string
	closed map[int]job.Finding
}

func (r *race) agent(name string, rounds int) {
	for range rounds {
		attempt := int(r.newest.Load())
		err := r.store.Claim(r.ctx, r.slot, r.claim(attempt, name, time.Minute), r.until)
		if err != nil && !errors.Is(err, store.ErrTaken) && !errors.Is(err, store.ErrWithdrawn) {
			r.Errorf("claim: %v", err)
		}
		if err != nil {
			continue
		}
		r.mu.Lock()
		if other := r.holder[attempt]; other != "" && other != name {
			r.Errorf("attempt %d was given to %s and to %s", attempt, other, name)
		}
		r.holder[attempt] = name
		_, ended := r.closed[attempt]
		r.mu.Unlock()
		_, err = r.store.Heartbeat(r.ctx, r.slot, r.claim(attempt, name, 2*time.Minute), r.until)
		if err == nil && ended {
			r.Errorf("the heartbeat of attempt %d held after it was closed", attempt)
		}
	}
}

// closer ends the newest attempt and opens the next: late enough for any claim to have ended, or too early.
func (r *race) closer(number, rounds int) {
	for i := range rounds {
		attempt := int(r.newest.Load())
		now := time.Duration((i+number)%2) * time.Hour
		found, err := r.store.Close(r.ctx, r.slot, r.closing(attempt, now))
		if err != nil {
			r.Errorf("close: %v", err)
			return
		}
		if found.Finding != job.FoundNobody && found.Finding != job.FoundSilent {
			continue
		}
		r.mu.Lock()
		if before, again := r.closed[attempt]; again && before != found.Finding {
			r.Errorf("attempt %d was closed as %s and as %s", attempt, before, found.Finding)
		}
		r.closed[attempt] = found.Finding
		r.mu.Unlock()
		r.newest.CompareAndSwap(int64(attempt), int64(attempt+1))
	}
}

// nothingLostInARace: every save that was answered must be counted in the end.
func nothingLostInARace(w *world) {
	const schedulers, rounds = 6, 10
	id := w.create(w.job("a")).ID
	var saves atomic.Int64
	errs := atOnce(schedulers, func(int) error { return w.saveMany(id, rounds, &saves) })
	for _, err := range errs {
		w.want("saves", err, nil)
	}
	j := w.load(id)
	if j.Rev != 1+saves.Load() || int64(j.FailureCount) != saves.Load() {
		w.Fatalf("got Rev %d and %d counted; want %d saves", j.Rev, j.FailureCount, saves.Load())
	}
}

// saveMany saves rounds times. Each conflict is the progress of another saver, and its tries outnumber the others.
func (w *world) saveMany(id string, rounds int, saves *atomic.Int64) error {
	const tries = 10_000
	saved := 0
	for range tries {
		j, err := w.store.Load(w.ctx, id)
		if err != nil {
			return err
		}
		j.FailureCount++
		// A save has a name of its own, by which a store recognises one that was made and lost its answer.
		j.LockedBy = fmt.Sprint("engine/", random(1<<60))
		err = w.save(j)
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
		if err == nil {
			saves.Add(1)
			saved++
		}
		if saved == rounds {
			return nil
		}
	}
	return fmt.Errorf("saved %d times in %d tries, want %d", saved, tries, rounds)
}
