package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// In some worlds a receiver hangs: it takes a call, does not answer, and ignores that the time of the call is over.

// hanging are the receivers that hang, and when.
type hanging struct {
	windows map[string]window
	// forGood: the listener hangs as long as the world lasts.
	forGood bool
	// ended closes at the end of the world.
	ended chan struct{}
	// reached are the announcements whose receiver was called in time, by receiver and announcement; made is which process
	// saved each announcement.
	reached map[string]bool
	made    map[string]*life
}

// hang rolls which receivers hang.
func (w *world) hang() {
	h := &hanging{windows: map[string]window{}, ended: make(chan struct{}), reached: map[string]bool{}, made: map[string]*life{}}
	for _, who := range []string{"operator", "listener", "hearer"} {
		h.windows[who] = w.faults.window(ReceiverHangs, who, w.start, faultsLast)
	}
	h.forGood = h.windows["listener"] != window{} && oneIn(w.chance.of("hangs for good"), 3)
	w.hanging = h
}

// hangs reports whether a call of a receiver hangs now.
func (w *world) hangs(who string) bool {
	if who == "listener" && w.hanging.forGood {
		return true
	}
	return !w.faults.over && w.hanging.windows[who].holds(time.Now())
}

// hangsNow is hangs for who does not hold w.mu.
func (w *world) hangsNow(who string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hangs(who)
}

// hung is a call that hangs: it ends when the receiver comes back, or with the world.
func (l *life) hung(who string) {
	l.w.mu.Lock()
	until, forGood := time.Until(l.w.hanging.windows[who].to), l.w.hanging.forGood && who == "listener"
	l.w.note(l.name, "calls the "+who+", who hangs")
	l.w.layer.Played(layers.Hanging)
	if forGood {
		until = endsWithin + longest - time.Since(l.w.start) // Whoever waited for it all the time is found then.
	}
	until += between(l.w.chance.of("comes back", l.name, who), time.Microsecond, time.Second)
	if l.hanging[who]++; l.hanging[who] >= pause.MaxHanging {
		l.rests[who] = true
	}
	l.w.mu.Unlock()
	select {
	case <-time.After(until):
	case <-l.w.hanging.ended:
	}
	l.w.mu.Lock()
	l.hanging[who]--
	l.w.mu.Unlock()
}

// reaches notes that a receiver is called while there is time to answer. w.mu is held.
func (h *hanging) reaches(who string, announcement string) { h.reached[who+" "+announcement] = true }

// madeBy notes which process saved an announcement.
func (h *hanging) madeBy(l *life, job string, seq int) {
	h.made[job+"/"+strconv.Itoa(seq)] = l
}

// silenced checks NTF-8: a process that makes an announcement calls every receiver of it, even if another receiver
// hangs. A receiver of which pause.MaxHanging calls hang in a process is left alone for a while. w.mu is held.
func (w *world) silenced(l *life, j job.Job) {
	if l.troubled || l.stood || len(j.Untold) == 0 {
		return
	}
	first := map[string]string{}
	for _, a := range j.Untold {
		name := j.ID + "/" + strconv.Itoa(a.Seq)
		if a.Operator && first["operator"] == "" {
			first["operator"] = name
		}
		if a.Listener && first["listener"] == "" && j.TellAt.IsZero() {
			first["listener"] = name
		}
	}
	for _, who := range []string{"operator", "listener"} {
		name := first[who]
		if name == "" || w.hanging.made[name] != l || w.hanging.reached[who+" "+name] || l.rests[who] || strings.HasPrefix(who, "listener") && w.hangs(who) {
			continue
		}
		w.violate(j.ID, "NTF-8: the %s is not called for announcement %s, and %s has dealt with what it says", who, name, l.name)
	}
}
