package job

import (
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Hold pauses an agent or a workflow as a whole: no new task is sent to the agent, or for a job of the workflow.
type Hold struct {
	Kind makegood.HoldKind `json:"kind"`
	Name string            `json:"name"`
	// Since is when it was paused, By the person that did it, and Reason why, as they said.
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Limit is that of the agent, where it is a limit and no pause.
	Limit
	// ReleasedAt is when it was resumed. It holds no job from then on; the jobs that it held go on little by little.
	ReleasedAt time.Time `json:"releasedAt,omitzero"`
	// Next is when the next jobs go on, Steps how often some did, and Resumed how many were told to.
	Next    time.Time `json:"next,omitzero"`
	Steps   int       `json:"steps,omitempty"`
	Resumed int       `json:"resumed,omitempty"`
	// ReleasedBy is the person that resumed it.
	ReleasedBy string `json:"releasedBy,omitempty"`
	// Until is when a pause ends that an agent asked for (agent.SlowDown).
	Until time.Time `json:"until,omitzero"`
	// Tripped: the breaker has paused the agent. Probes is how many jobs were let through since, one at a time, each at
	// Next, and Probe is the last of them: it does not hold that one. Asked is how many of them a person asked for.
	Tripped bool   `json:"tripped,omitempty"`
	Probe   string `json:"probe,omitempty"`
	Probes  int    `json:"probes,omitempty"`
	Asked   int    `json:"asked,omitempty"`
	// Kept is what a later release has stored here; see Job.
	Kept string `json:"-"`
}

// String names it: "agent payments", "workflow order".
func (h Hold) String() string { return HoldName(h.Kind, h.Name) }

// HoldName is how a hold of this kind and name is called.
func HoldName(kind makegood.HoldKind, name string) string { return string(kind) + " " + name }

// On reports whether it holds anything: it was not resumed.
func (h Hold) On() bool { return h.ReleasedAt.IsZero() }

// Automatic reports whether it ends without a person.
func (h Hold) Automatic() bool { return h.Tripped || !h.Until.IsZero() }

// Why names the person that paused it, and the reason.
func (h Hold) Why() string {
	var parts []string
	if h.By != "" {
		parts = append(parts, "by "+h.By)
	}
	if h.Reason != "" {
		parts = append(parts, h.Reason)
	}
	return limits.Clip(strings.Join(parts, ": "))
}

// Holds are all that there are, those that are being released included. It is never changed in place.
type Holds []Hold

// On returns the hold of this name, as String gives it, if it holds anything.
func (all Holds) On(name string) (Hold, bool) {
	for _, h := range all {
		if h.On() && h.String() == name {
			return h, true
		}
	}
	return Hold{}, false
}

// OnFor returns the hold of this name, if it holds a job. A job that one breaker lets through as its probe, every
// breaker does: one that needs two agents, both of them paused, would be let through by each in turn, and by neither to
// its end.
func (all Holds) OnFor(name, id string) (Hold, bool) {
	h, on := all.On(name)
	probe := func(o Hold) bool { return o.Tripped && o.On() && o.Probe == id }
	return h, on && !(h.Tripped && slices.ContainsFunc(all, probe))
}

// Limit returns the limit of an agent. ok is false if it has none.
func (all Holds) Limit(agent string) (l Limit, ok bool) {
	if len(all) == 0 {
		return l, false
	}
	h, ok := all.On(HoldName(makegood.HoldLimit, agent))
	return h.Limit, ok
}
