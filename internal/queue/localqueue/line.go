package localqueue

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// window is among how many of the oldest visible messages the next one is picked at random, and
// after how many picks the very oldest has its turn, so that none waits for ever.
const window = 32

// line is one queue. Callers of its methods hold Queues.mu, except for render.
//
//	send --delay--> hidden --time--> ready --pick--> hidden (in flight) --delete-->
//	                   ^                                     |
//	                   '------- visibility, Return ----------'
type line struct {
	arn        string
	name       string
	visibility time.Duration
	maxReceive int
	deadLetter *line
	random     *rand.Rand
	counts     Counts

	// hidden are the delayed and the in flight ones, a heap by visibleAt; inFlight counts the latter.
	hidden   hiddenHeap
	inFlight int
	// ready are the visible ones, oldest first; near holds the oldest of all, taken off ready.
	// visible counts those of both that are not gone.
	ready   fifo
	near    []*message
	visible int
	picks   int
	// received finds the messages that have a receipt, by id.
	received map[string]*message

	// waiters are receivers that found no message. coming is how many messages the woken receivers that have not come
	// back yet may take.
	waiters []*waiter
	coming  int
	// timer calls ring at alarm; nil without a waiter or a coming message.
	ring  func()
	timer *time.Timer
	alarm time.Time
}

// waiter is a receiver that waits.
type waiter struct {
	limit int
	// woken is closed when there may be messages for it.
	woken chan struct{}
}

func newLine(q Queue, random *rand.Rand) *line {
	l := &line{
		arn: ARN(q.Name), name: q.Name, visibility: q.Visibility, maxReceive: q.MaxReceives,
		random: random, received: make(map[string]*message),
	}
	l.visibility = cmp.Or(l.visibility, DefaultVisibility)
	return l
}

func (l *line) send(m *message, now time.Time) {
	m.stamp(l.random, now)
	l.counts.Sent++
	if m.delay == 0 {
		l.show(m)
		return
	}
	l.hide(m, now.Add(m.delay))
}

func (l *line) show(m *message) {
	l.ready.push(m)
	l.visible++
}

func (l *line) hide(m *message, until time.Time) {
	m.visibleAt = until
	heap.Push(&l.hidden, m)
	if m.receipt != "" {
		l.inFlight++
	}
}

// reveal takes a message from its place among the hidden.
func (l *line) reveal(index int) *message {
	m := heap.Remove(&l.hidden, index).(*message)
	if m.receipt != "" {
		l.inFlight--
	}
	return m
}

// surface shows the hidden messages that are due.
func (l *line) surface(now time.Time) {
	for len(l.hidden) > 0 && !l.hidden[0].visibleAt.After(now) {
		l.show(l.reveal(0))
	}
}

// take delivers at most limit visible messages, appended to taken. Those out of deliveries become dead letters.
func (l *line) take(taken []delivery, limit int, now time.Time) []delivery {
	l.surface(now)
	for len(taken) < limit && l.visible > 0 {
		m := l.pick()
		if l.maxReceive > 0 && m.here >= l.maxReceive {
			l.bury(m, now)
			continue
		}
		taken = append(taken, l.deliver(m, now))
	}
	return taken
}

// pick takes one message off the visible ones. There must be one.
func (l *line) pick() *message {
	for {
		for len(l.near) < window && l.ready.len() > 0 {
			l.near = append(l.near, l.ready.pop())
		}
		i := 0
		if l.picks++; l.picks%window != 0 {
			i = l.random.IntN(len(l.near))
		}
		m := l.near[i]
		l.near = slices.Delete(l.near, i, i+1)
		if !m.gone {
			l.visible--
			return m
		}
	}
}

// oldest is when the oldest of the visible messages was sent, as far as is seen of the next ones.
func (l *line) oldest() (sent time.Time) {
	next := slices.Concat(l.near, l.ready.first(window))
	for _, m := range next {
		if !m.gone && (sent.IsZero() || m.sentAt.Before(sent)) {
			sent = m.sentAt
		}
	}
	return sent
}

func (l *line) deliver(m *message, now time.Time) delivery {
	m.receives++
	m.here++
	if m.receipt = m.first; m.receives > 1 {
		m.receipt = m.id + "#" + strconv.Itoa(m.receives)
	}
	l.received[m.id] = m
	l.hide(m, now.Add(l.visibility))
	l.counts.Received++
	return delivery{m, m.receipt, m.receives, m.source}
}

// bury moves a message to the dead letter queue, as new there but for its id and its count.
func (l *line) bury(m *message, now time.Time) {
	delete(l.received, m.id)
	m.here, m.receipt, m.source = 0, "", l.name
	l.counts.DeadLettered++
	l.deadLetter.show(m)
	l.deadLetter.settle(now)
}

// find returns the message of a receipt, unless it was deleted or delivered again since.
func (l *line) find(receipt string) (*message, bool) {
	id, _, _ := strings.Cut(receipt, "#")
	m := l.received[id]
	return m, m != nil && m.receipt == receipt
}

func (l *line) delete(receipt string) {
	m, ok := l.find(receipt)
	if !ok {
		return
	}
	delete(l.received, m.id)
	l.counts.Deleted++
	if m.index != notHidden {
		l.reveal(m.index)
		return
	}
	// It became visible again but was not taken yet. It stays in its place, to be passed over.
	m.gone = true
	l.visible--
}

func (l *line) giveBack(receipt string, at time.Time) {
	m, ok := l.find(receipt)
	if !ok || m.index == notHidden {
		return
	}
	m.visibleAt = at
	heap.Fix(&l.hidden, m.index)
}

// wait puts one among the waiters.
func (l *line) wait(limit int) *waiter {
	w := &waiter{limit, make(chan struct{})}
	l.waiters = append(l.waiters, w)
	return w
}

// arrive takes w away from where it is: among the waiters, or on its way back from there. nil: it has not waited.
func (l *line) arrive(w *waiter) {
	if w == nil {
		return
	}
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		return
	}
	l.coming -= w.limit
}

// settle is called after every change. It wakes as many waiters as can share the visible messages, and sets the timer
// for the rest.
func (l *line) settle(now time.Time) {
	if len(l.waiters) > 0 {
		l.surface(now)
	}
	for l.visible > l.coming && len(l.waiters) > 0 {
		w := l.waiters[0]
		l.waiters = slices.Delete(l.waiters, 0, 1)
		l.coming += w.limit
		close(w.woken)
	}
	l.setTimer(now)
}

func (l *line) setTimer(now time.Time) {
	if len(l.waiters) == 0 || len(l.hidden) == 0 {
		l.stopTimer()
		return
	}
	next := l.hidden[0].visibleAt
	// A timer that rings too early is set anew then; one that is too late must be now.
	if l.timer != nil && !l.alarm.After(next) && l.alarm.After(now) {
		return
	}
	l.stopTimer()
	l.alarm = next
	l.timer = time.AfterFunc(next.Sub(now), l.ring)
}

func (l *line) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}
