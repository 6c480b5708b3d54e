package agentdoor

import (
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// maxSeen is the number of instances of an agent that are remembered: the latest ones.
const maxSeen = 1024

// seen holds the time of the last request for tasks of each instance of an agent.
type seen struct {
	mu   sync.Mutex
	last time.Time
	by   map[string]time.Time
}

// asks notes that an instance asks for tasks, or has waited for some until now.
func (s *seen) asks(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if _, known := s.by[instance]; !known && len(s.by) >= maxSeen {
		s.forget()
	}
	s.by[instance] = s.last
}

// forget makes room for one instance: those that are absent go, or the one that was seen first. s.mu is held.
func (s *seen) forget() {
	first := ""
	for instance, at := range s.by {
		if s.last.Sub(at) > limits.AbsentAfter {
			delete(s.by, instance)
		} else if first == "" || at.Before(s.by[first]) {
			first = instance
		}
	}
	if len(s.by) >= maxSeen {
		delete(s.by, first)
	}
}

// lately counts the instances that asked, or waited, after a moment.
func (s *seen) lately(after time.Time) (n int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.by {
		if at.After(after) {
			n++
		}
	}
	return n, s.last
}

// Polls describes the requests for tasks of an agent outside.
type Polls struct {
	// Waiting is the number of requests that wait for tasks now, Instances the number of processes with a request within
	// limits.AbsentAfter, at most 1,024.
	Waiting, Instances int
	// LastAt is when the last request came, or stopped waiting; zero: none came since Since, when the door was opened.
	LastAt, Since time.Time
}

// Polls returns the requests for tasks of an agent; known is false if no agent of this name runs outside. Only this
// process knows them, and they are lost when it ends.
func (d *Door) Polls(agent string) (p Polls, known bool) {
	a := d.agents[agent]
	if a == nil {
		return Polls{}, false
	}
	p = Polls{Waiting: len(a.polls), Since: d.opened}
	p.Instances, p.LastAt = a.seen.lately(time.Now().Add(-limits.AbsentAfter))
	if p.Waiting > 0 {
		p.LastAt, p.Instances = time.Now(), max(p.Instances, 1)
	}
	return p, true
}
