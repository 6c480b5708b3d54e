package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// maxTried is how many jobs a dry run asks one by one.
	maxTried = 200
	// maxNamed is how many jobs it names of each answer.
	maxNamed = 5
)

// rates are how many jobs a second a repair may ask.
var rates = []int{1, 10, bulk.DefaultPerSecond, 200, bulk.MaxPerSecond}

// dryRunData is the expected outcome of a request to many jobs.
type dryRunData struct {
	Choice choice
	// Jobs is how many are chosen, Tried how many were asked for their outcome. More: the set exceeds one repair.
	Jobs, Tried int
	More        bool
	// Would are the outcomes: the most frequent effect first, then the refusals.
	Would, Refused []wouldBe
	// Others are the requests that may be chosen instead.
	Others []order
	// Name is the name of the repair that would begin, Seen the time of this look.
	Name string
	Seen time.Time
	// Kept: it goes on when this process was killed and is back.
	Kept  bool
	Rates []int
	Rate  int
}

// Title names the window.
func (d dryRunData) Title() string { return "Dry run: " + d.Choice.Verb() + " " + many(d.Jobs, "job") }

// wouldBe is an answer, and how many gave it.
type wouldBe struct {
	Says string
	Jobs int
	IDs  []string
}

// dryRun shows the expected outcome of a request to many jobs, and changes none.
func (p *Page) dryRun(r *http.Request) (any, error) {
	c, err := readChoice(r.URL.Query())
	if err != nil {
		return nil, err
	}
	now := p.Now().UTC()
	found, more, err := c.jobs(r.Context(), p.Jobs, now)
	if err != nil {
		return nil, err
	}
	d := dryRunData{
		Choice: c, Jobs: len(found), Tried: min(len(found), maxTried), More: more, Name: "repair-" + protocol.NewJobID(now), Seen: now, Kept: p.repairs.Keeps(),
		Rates: rates, Rate: bulk.DefaultPerSecond,
	}
	if c.Settles() {
		d.Others = bulkSettles
	}
	answers := make([]tried, d.Tried)
	someAtOnce(d.Tried, func(i int) { answers[i] = p.try(r.Context(), c, found[i].ID) })
	for _, a := range answers {
		into := &d.Would
		if a.refused {
			into = &d.Refused
		}
		*into = addAnswer(*into, a)
	}
	for _, list := range [][]wouldBe{d.Would, d.Refused} {
		slices.SortStableFunc(list, func(a, b wouldBe) int { return cmp.Compare(b.Jobs, a.Jobs) })
	}
	return d, context.Cause(r.Context())
}

// tried is the expected outcome for a job.
type tried struct {
	id, says string
	refused  bool
}

func addAnswer(list []wouldBe, a tried) []wouldBe {
	i := slices.IndexFunc(list, func(w wouldBe) bool { return w.Says == a.says })
	if i < 0 {
		list, i = append(list, wouldBe{Says: a.says}), len(list)
	}
	list[i].Jobs++
	if len(list[i].IDs) < maxNamed {
		list[i].IDs = append(list[i].IDs, a.id)
	}
	return list
}

// try asks a job for the expected outcome.
func (p *Page) try(ctx context.Context, c choice, id string) tried {
	if c.Current {
		plan, err := p.Jobs.Plan(ctx, id, api.Request{Verb: makegood.VerbResubmit, Definition: api.CurrentDefinition})
		if refused, is := errors.AsType[*api.RefusedError](err); is {
			return tried{id: id, says: refused.Reason, refused: true}
		}
		if err != nil {
			return tried{id: id, says: err.Error(), refused: true}
		}
		return tried{id: id, says: plan.Effect + ", by the current definition"}
	}
	offers, err := p.Jobs.Offers(ctx, id)
	if err != nil {
		return tried{id: id, says: err.Error(), refused: true}
	}
	if c.Ask == askAnswer {
		return c.tryAnswer(id, offers)
	}
	offer, there := domain.OfferOf(offers, c.Ask)
	if c.Settles() {
		step, stands := domain.OffersOfStep(offers, c.Step, c.Undo)
		if offer, there = domain.StepOffer(step, c.Ask); !stands || !there {
			return tried{id: id, says: "this step cannot be settled", refused: true}
		}
	}
	switch {
	case !there:
		return tried{id: id, says: "it cannot be asked for", refused: true}
	case !offer.Granted():
		return tried{id: id, says: cmp.Or(offer.Reason, offer.Effect), refused: offer.Effect == limits.OfferRefused}
	}
	return tried{id: id, says: offer.Effect}
}

// tryAnswer returns the expected outcome of an answer to a step.
func (c choice) tryAnswer(id string, offers makegood.Offers) tried {
	step, _ := domain.OffersOfStep(offers, c.Step, c.Undo)
	offer, there := domain.StepOffer(step, domain.AskComplete)
	switch {
	case !there, !offer.Granted():
		return tried{id: id, says: cmp.Or(offer.Reason, "this step asks no question now"), refused: true}
	case !slices.Contains(step.Choices, c.Answer):
		return tried{id: id, says: "the answers that it takes are " + strings.Join(step.Choices, ", "), refused: true}
	}
	return tried{id: id, says: step.Question + " " + offer.Effect}
}

// beginRepair begins the repair of a dry run, for the jobs that had stopped by then.
func (p *Page) beginRepair(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	c, err := readChoice(r.PostForm)
	if err != nil {
		return nil, err
	}
	name := r.PostForm.Get("name")
	if known, err := p.repairs.Get(name); err == nil {
		return goTo("repairs/" + known.Name), nil // The form was sent twice.
	}
	seen, err := time.Parse(time.RFC3339Nano, r.PostForm.Get("seen"))
	if err != nil {
		return nil, &api.InvalidError{Message: "seen: want when the dry run was looked at"}
	}
	rate, err := strconv.Atoi(cmp.Or(r.PostForm.Get("rate"), strconv.Itoa(bulk.DefaultPerSecond)))
	if err != nil {
		return nil, &api.InvalidError{Message: "rate: want how many jobs a second"}
	}
	reason := r.PostForm.Get("reason")
	if c.Ask == domain.AskSettleSkipped && reason == "" {
		return nil, &api.InvalidError{Message: "A skip needs a reason: it is kept with the step."}
	}
	found, more, err := c.jobs(r.Context(), p.Jobs, seen)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, &api.InvalidError{Message: "These are more than " + many(bulk.MaxJobs, "job") + ", which is what one repair takes: narrow the filter, or use the command."}
	}
	order := c.order(name, reason, float64(rate), found)
	order.By, order.BeganAt = fitting(p.Caller(r)), p.Now().UTC()
	begun, err := p.repairs.Begin(order)
	if err != nil {
		return nil, err
	}
	return goTo("repairs/" + begun.Name), nil
}

// order is the repair to carry out.
func (c choice) order(name, reason string, perSecond float64, jobs []api.Listed) bulk.Order {
	o := bulk.Order{Name: name, Says: c.Says(), Reason: reason, PerSecond: perSecond}
	if c.Ask == askAnswer {
		o.Step, o.Undo, o.Answer = c.Step, c.Undo, c.Answer
	} else if c.Settles() {
		o.Step, o.Undo, o.Skipped = c.Step, c.Undo, c.Ask == domain.AskSettleSkipped
	} else {
		o.Verb = makegood.Verb(c.Ask)
	}
	if c.Current {
		o.Definition = api.CurrentDefinition
	}
	for _, j := range jobs {
		o.Jobs = append(o.Jobs, j.ID)
	}
	return o
}

// fitting is the name of the author without the characters and the length that a request may not have.
func fitting(who string) string {
	who = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if limits.CheckWho(string(r)) != nil {
			return -1
		}
		return r
	}, who), "")
	for len(who) > limits.MaxWhoBytes {
		_, last := utf8.DecodeLastRuneInString(who)
		who = who[:len(who)-last]
	}
	return who
}

// progressData is how far a repair is.
type progressData struct{ repairView }

// Title names the window.
func (d progressData) Title() string { return d.Verb() + ": " + d.Says }

// Shown is the repair alone.
func (d progressData) Shown() repairView { return d.repairView }

// repairView is a repair for the template.
type repairView struct {
	bulk.Progress
	Now time.Time
}

// Verb is the label of the request.
func (v repairView) Verb() string {
	switch {
	case v.Answer != "":
		return choice{Ask: askAnswer, Answer: v.Answer}.Verb()
	case v.Progress.Verb == "" && v.Skipped:
		return choice{Ask: domain.AskSettleSkipped}.Verb()
	case v.Progress.Verb == "":
		return choice{Ask: domain.AskSettleDone}.Verb()
	case v.Definition != "":
		return "Resubmit by the current definition"
	}
	return choice{Ask: string(v.Progress.Verb)}.Verb()
}

// Percent is the share of jobs asked so far.
func (v repairView) Percent() string {
	return strconv.FormatFloat(100*float64(v.Asked)/float64(max(1, v.Total())), 'f', 1, 64)
}

// Takes is how long it takes at least from now.
func (v repairView) Takes() time.Duration {
	return time.Duration(float64(v.Left()) / v.PerSecond * float64(time.Second))
}

// Took is how long it took.
func (v repairView) Took() time.Duration { return v.EndedAt.Sub(v.BeganAt) }

// repairing loads how far a repair is.
func (p *Page) repairing(r *http.Request) (any, error) {
	progress, err := p.repairs.Get(r.PathValue("name"))
	if errors.Is(err, bulk.ErrNone) {
		return nil, &problem{status: http.StatusNotFound, Head: "There is no such repair", Text: "No repair of this name is kept here: it was begun elsewhere, or is forgotten by now. Its effects are in its jobs."}
	}
	if err != nil {
		return nil, err
	}
	return progressData{repairView{progress, p.Now().UTC()}}, nil
}

// stopRepair lets a repair begin no more jobs.
func (p *Page) stopRepair(r *http.Request) (any, error) {
	name := r.PathValue("name")
	err := p.repairs.Stop(name)
	if errors.Is(err, bulk.ErrNone) {
		return nil, &problem{status: http.StatusNotFound, Head: "There is no such repair", Text: "No repair of this name is kept here."}
	}
	return goTo("repairs/" + name), err
}
