package machine_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// Whatever has happened to a job: what is offered is what asking brings, with the same words where it is refused, and saying
// so changes nothing.
func TestAnOfferIsWhatAskingBrings(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			x.now = x.now.Add(time.Duration(rapid.IntRange(0, 15000).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "claim first") {
				x.claim()
			}
			e, ok := x.drawEvent()
			if !ok {
				continue
			}
			loaded := x.job.Clone()
			x.behind()
			x.move(loaded, e)
		}
		if x.job.Incarnation < x.run {
			return // Whoever touches it next ends its attempts first.
		}
		x.nested, x.held = true, x.known()
		before := x.job.Clone()
		offers := machine.Offers(x.of(x.job), x.job, x.claims(), x.facts(nil), x.now)
		if !reflect.DeepEqual(before, x.job) {
			t.Fatal("saying what may be asked changed the job")
		}
		for _, o := range offers.Verbs {
			x.compare(o, x.asking(o))
		}
		for _, s := range offers.Steps {
			for _, o := range s.Asks {
				x.compare(o, x.askingStep(s, o))
			}
		}
	})
}

// claims are those on the attempts that are out, by step.
func (x *world) claims() map[string]job.Claim {
	held := map[string]job.Claim{}
	for _, a := range machine.Out(x.of(x.job), x.job) {
		task := x.tasks[id(a.Step, a.Attempt)]
		if found := store.Looked(x.items[x.slot(a.Step, a.Undo)], a.Attempt, task.ClaimUntil, x.now); found.Finding == job.FoundHeld {
			held[a.Step] = found.Claim
		}
	}
	for i, s := range x.job.Steps {
		if claim, is := machine.ClaimWithin(x.of(x.job), x.job, i); is {
			held[s.Name] = claim
		}
	}
	return held
}

// asking is the event by which somebody asks for what is offered.
func (x *world) asking(o makegood.Offer) job.Event {
	if o.Ask == domain.AskWake {
		return job.DeadlinePassed{}
	}
	return job.Requested{Verb: makegood.Verb(o.Ask), StartAt: x.now.Add(90 * time.Second), Timeout: makegood.Hour}
}

// askingStep is the event by which somebody asks for what is offered of a step.
func (x *world) askingStep(s makegood.StepOffers, o makegood.Offer) job.Event {
	place := job.Place{Step: s.Step, Undo: s.Undo}
	output := job.Payload{Inline: json.RawMessage(`"other"`), Bytes: 7}
	if len(s.Choices) > 0 {
		text, err := json.Marshal(s.Choices[0])
		if err != nil {
			x.t.Fatal(err)
		}
		output = job.Payload{Inline: text, Bytes: len(text)}
	}
	switch o.Ask {
	case domain.AskSettleDone:
		return job.Settled{Place: place, Done: true, Output: output}
	case domain.AskSettleSkipped:
		return job.Settled{Place: place, Reason: "otherwise"}
	case domain.AskSettleNotDone:
		return job.Settled{Place: place, NotDone: true, Reason: "otherwise"}
	case domain.AskComplete:
		return job.StepCompleted{Place: place, Output: output}
	case domain.AskFail:
		return job.StepCompleted{Place: place, Error: &job.StepError{Message: "another", Applied: makegood.AppliedUnknown}}
	case domain.AskHeartbeat:
		return job.WaitExtended{Place: place, Until: x.now.Add(makegood.MaxWait)}
	default:
		x.t.Fatalf("nobody knows how to ask for %q", o.Ask)
		return nil
	}
}

// compare asks for what is offered, of a copy of the job and of its claims.
func (x *world) compare(o makegood.Offer, e job.Event) {
	switch v := x.verdict(e); {
	case v.Kind == machine.Refused && (o.Effect != limits.OfferRefused || o.Reason != v.Reason):
		x.t.Fatalf("%+v is offered, but %#v is refused: %s", o, e, v.Reason)
	case v.Kind == machine.Applied && !o.Granted():
		x.t.Fatalf("%+v is offered, but %#v is applied", o, e)
	}
}

// verdict is what asking would bring. Nothing happens meanwhile.
func (x *world) verdict(e job.Event) machine.Verdict {
	items := maps.Clone(x.items)
	facts := x.facts(map[machine.Ask]job.Found{})
	for range 10 * (len(x.w.Steps) + 1) {
		next, v := machine.Apply(x.of(x.job), x.job.Clone(), e, facts, x.now)
		if v.Kind != machine.Wanting {
			return v
		}
		for _, a := range v.Asks {
			name, until := x.slot(a.Step, a.Undo), x.tasks[id(a.Step, a.Attempt)].ClaimUntil
			var err error
			found := job.Found{Finding: job.FoundSilent}
			switch a.Kind {
			case machine.AskLook:
				found = store.Looked(items[name], a.Attempt, until, x.now)
			case machine.AskClose:
				items[name], found = store.Closed(items[name], store.Closing{Attempt: a.Attempt, Until: until, Now: x.now, LockedBy: a.LockedBy})
			default:
				items[name], err = store.Overruled(items[name], a.Attempt, a.LockedBy, until)
			}
			if err != nil || found.Finding == job.FoundOver {
				return machine.Verdict{Kind: machine.Stale} // It must be asked of the job as it is by then.
			}
			facts.Found[a] = found
		}
		x.values(x.of(next), &facts, v.Wants)
	}
	x.t.Fatalf("%#v: there is no end to what the core wants to know", e)
	return machine.Verdict{}
}
