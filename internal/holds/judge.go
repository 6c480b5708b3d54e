package holds

import (
	"fmt"
	"sync"
	"time"
)

// An agent, or the service behind it, is ill when at least half of its latest attempts within window were sick, of at
// least attempts; or when each of its last inARow was. The sick ones must be of at least fewJobs jobs: the data of a
// few may be bad.
const (
	window   = 30 * time.Second
	attempts = 20
	inARow   = 10
	fewJobs  = 5
)

const (
	// kept is how many outcomes of an agent are remembered: of a busy one the last second's.
	kept = 100
	// maxAgents is how many agents are judged. Further ones are not.
	maxAgents = 1000
)

// Judge judges agents by the outcomes of their attempts that this process has seen. Its methods may be called by many
// goroutines at once. The zero value is ready.
type Judge struct {
	mu     sync.Mutex
	agents map[string]*outcomes
}

// outcomes is a ring: the next one goes to all[n%kept].
type outcomes struct {
	all [kept]outcome
	n   int
}

type outcome struct {
	job  string
	sick bool
	at   time.Time
}

// Saw takes the outcome of an attempt of an agent, and returns why the agent is ill; empty: it is not. An agent that is
// ill is judged afresh.
func (j *Judge) Saw(agent, job string, sick bool, at time.Time) (why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of, known := j.agents[agent]
	switch {
	case !known && !sick || !known && len(j.agents) >= maxAgents:
		return "" // There is no need to know of an agent that was never sick.
	case !known:
		if j.agents == nil {
			j.agents = make(map[string]*outcomes)
		}
		of = &outcomes{}
		j.agents[agent] = of
	}
	of.all[of.n%kept] = outcome{job, sick, at}
	of.n++
	if !sick {
		return ""
	}
	if why = of.ill(at); why != "" {
		delete(j.agents, agent)
	}
	return why
}

// Forget judges an agent afresh.
func (j *Judge) Forget(agent string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.agents, agent)
}

// ill says why the agent is, after an attempt that was sick.
func (o *outcomes) ill(now time.Time) string {
	jobs := make(map[string]bool, inARow)
	sick, all := 0, 0
	for ; all < min(o.n, kept); all++ {
		one := o.all[(o.n-1-all)%kept]
		row := sick == all && all < inARow // As old as they may be.
		if !row && now.Sub(one.at) > window {
			break
		}
		if one.sick {
			sick++
			jobs[one.job] = true
		}
		if row && sick == inARow && len(jobs) >= fewJobs {
			return fmt.Sprintf("its last %d attempts failed, of %d jobs", sick, len(jobs))
		}
	}
	if all >= attempts && 2*sick >= all && len(jobs) >= fewJobs {
		return fmt.Sprintf("%d of %d attempts failed within %s, of %d jobs", sick, all, window, len(jobs))
	}
	return ""
}
