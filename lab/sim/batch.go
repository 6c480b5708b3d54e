package sim

import (
	"maps"
	"strings"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"

	"github.com/aws/aws-lambda-go/events"
)

// What batch a process was given to deal with.

// given notes the events of a batch, for the story.
func (l *life) given(batch events.SQSEvent) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.batch, l.firsts = map[string][]job.Event{}, map[string]string{}
	l.submitted, l.troubled, l.stood, l.passedOn = map[string]bool{}, false, false, map[string]bool{}
	maps.DeleteFunc(l.rests, func(who string, _ bool) bool { return l.hanging[who] < pause.MaxHanging })
	l.older = l.w.mixed && !l.newer()
	for _, attempt := range l.told {
		delete(l.w.answered[attempt], l.name)
	}
	l.told, l.ruled = nil, ruledBy{}
	l.forget()
	for _, record := range batch.Records {
		in, err := l.w.reading.event(record.Body)
		switch {
		case err != nil:
		case in.Submit != nil:
			l.submitted[in.Submit.ID] = true
		default:
			l.batch[in.Job] = append(l.batch[in.Job], in.Event)
		}
	}
}

// manySeen is how many jobs a process has seen when it forgets some.
const manySeen = 100

// forget drops the parts of maps that have ended: a process sees a thousand of them, each as it was at another time.
func (l *life) forget() {
	if len(l.seen) <= manySeen {
		return
	}
	maps.DeleteFunc(l.seen, func(id string, _ job.Job) bool {
		_, child := domain.ChildOf(id)
		j, _ := l.w.store.Stored(id)
		return child && j.ProcessState.Finished()
	})
}

// asked notes a request, for the story.
func (l *life) asked(id string, e job.Event) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.firsts = map[string]string{}
	l.batch, l.asks = map[string][]job.Event{id: {e}}, true
}

// later reports whether a call finds something out about an attempt for a later event of a batch that has several of
// one job: about another attempt of it was asked before. w.mu is held.
func (l *life) later(op, on string) bool {
	job, attempt, found := strings.Cut(on, "/")
	if !found || op != "close" && op != "look" || len(l.batch[job]) < 2 {
		return false
	}
	first := l.firsts[job]
	if first == "" {
		l.firsts[job] = attempt
	}
	return first != "" && first != attempt
}
