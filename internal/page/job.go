package page

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/graph"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// historyPage is how many entries of a history are shown at a time.
	historyPage = 30
	// maxWell is how many of the things that simply went well stand between them.
	maxWell = 40
	// settles is how many steps may be proposed for settling beside the job's verbs; the others offer it at their place.
	settles = 3
)

func jobViews() []view {
	return []view{
		{pattern: "GET /jobs/{id}", nav: "Jobs", template: "job.html", load: (*Page).job, regions: []string{
			"job-head", "job-questions", "job-why", "job-facts", "job-graph", "job-time", "job-steps", "job-history",
		}},
		{pattern: "GET /jobs/{id}/payload", nav: "Jobs", template: "payload.html", load: (*Page).payload},
		{pattern: "GET /jobs/{id}/ask/{ask}", nav: "Jobs", template: "ask.html", load: (*Page).ask},
		{pattern: "POST /jobs/{id}/ask/{ask}", nav: "Jobs", template: "ask.html", load: (*Page).askFor},
	}
}

// jobData is the view of a job.
type jobData struct {
	Job makegood.Job
	mark
	Why why
	// Blockers are the jobs below it that stand before a person.
	Blockers []protocol.Blocker
	// Questions stand first.
	Questions []question
	Stands    []stand
	Verbs     []verb
	Facts     facts
	// Input: it is small, and shown; else it is a click away. Payloads are the large ones that it refers to.
	Input    bool
	Payloads []payloadLink
	Graph    template.HTML
	Time     timeData
	Steps    []stepData
	History  historyData
	// SentAside: the inputs of its tasks are a click away.
	SentAside bool
	// Unknown is why the allowed actions are not known; empty: they are.
	Unknown string
}

// Title names the window.
func (d jobData) Title() string { return d.Job.ID + ", " + d.Job.Workflow + ", " + d.Name }

// seen is a job as it was read, with everything needed to describe it.
type seen struct {
	job    makegood.Job
	offers makegood.Offers
	// workflow is the job's definition; nil: it cannot be read. current is the hash of the definition for new jobs; empty:
	// not known.
	workflow *makegood.Workflow
	current  string
	now      time.Time
	// sent are the inputs of its tasks, if they were requested.
	sent []makegood.SentInput
	// agents are those by name, if an attempt waits for one of them.
	agents map[string]agentRow
	// nodes are the job's steps as they look, by name; order and edges are the drawn graph.
	nodes map[string]graph.Node
	order []graph.Node
	edges []graph.Edge
}

// look notes how the steps of the job look. Without the definition the edges are not known.
func (s *seen) look() {
	of := s.workflow
	if of == nil {
		of = &makegood.Workflow{}
		for _, step := range s.job.Steps {
			of.Steps = append(of.Steps, makegood.Step{Name: step.Name})
		}
	}
	s.order, s.edges = graph.OfJob(*of, s.job)
	s.nodes = map[string]graph.Node{}
	for i := range s.order {
		s.order[i].Href = "#step-" + s.order[i].ID
		s.nodes[s.order[i].ID] = s.order[i]
	}
}

// job loads the view of a job.
func (p *Page) job(r *http.Request) (any, error) {
	s, unknown, err := p.see(r)
	if err != nil {
		return nil, err
	}
	if !p.Scans { // Of a stack it would be paid for with each look; its JSON is a click away.
		if all, err := p.Jobs.SentInputs(r.Context(), s.job.ID, ""); err == nil {
			s.sent = all.Inputs
		} // A failed evaluation leaves the job as it is shown.
	}
	d := jobData{Job: s.job, SentAside: p.Scans, Why: whyOf(s), Questions: questionsOf(s), Stands: standsOf(s), Verbs: verbsOf(s), Unknown: unknown, Input: given(s.job.Input), Payloads: payloadsIn(s.job.ID, s.job.Input)}
	d.Blockers = protocol.Blockers(r.Context(), protocol.BlockerReads{Look: p.Jobs.Look, Definition: p.definition}, s.job)
	if len(d.Blockers) > 0 {
		d.Why.Tone = "waiting"
	}
	d.mark = markOf(s.job.ProcessState, s.job.Paused, waits(s.job))
	d.Graph = graphOf(s)
	whole := r.FormValue("scale") == "true"
	line := lineOf(s, whole)
	d.Time = timeOf(s, line)
	d.Time.Whole = whole
	d.Steps = stepsOf(s, line)
	d.Facts = factsOf(s, line)
	d.Facts.Commands = commandsOf(s, p.Flags)
	d.History, err = historyOf(s.job, r.FormValue("before"))
	return d, err
}

// see reads a job and its allowed actions. If only the latter cannot be read, unknown says why.
func (p *Page) see(r *http.Request) (s seen, unknown string, err error) {
	ctx, id := r.Context(), r.PathValue("id")
	s.now = p.Now().UTC()
	if s.job, err = p.Jobs.Outline(ctx, id); err != nil {
		return s, "", err
	}
	s.offers, err = p.Jobs.Offers(ctx, id)
	switch {
	case errors.Is(err, api.ErrNotFound):
		return s, "", err
	case err != nil && ctx.Err() == nil:
		unknown = p.problemOf(r, err).Text
	}
	if definition, err := p.definition(ctx, s.job.Definition); err == nil {
		s.workflow = &definition.Workflow
	}
	known, err := p.Jobs.Workflows(ctx)
	if err != nil {
		return s, unknown, err
	}
	for _, w := range known {
		if w.Name == s.job.Workflow {
			s.current = w.Definition
		}
	}
	s.look()
	s.agents = p.waitedFor(ctx, s.job, s.now)
	return s, unknown, nil
}

// back reports whether the job is undone, or to be.
func back(j makegood.Job) bool { return j.Desired != makegood.JobProcessed }

// side is a step in the direction in which its job goes.
func side(j makegood.Job, s makegood.JobStep) makegood.Activity {
	if !back(j) {
		return s.Activity
	}
	if isOut(s.State) {
		return s.Activity // It must end before its undo begins.
	}
	if s.Undo == nil {
		return makegood.Activity{State: makegood.StepNotStarted}
	}
	return *s.Undo
}

// onUndo reports whether side is the step's undo.
func onUndo(j makegood.Job, s makegood.JobStep) bool {
	return back(j) && !isOut(s.State)
}

// isOut reports whether an attempt stands before its gate, is sent, or is at work.
func isOut(s makegood.StepState) bool {
	return s == makegood.StepQueued || s == makegood.StepDispatched || s == makegood.StepClaimed
}

// graphOf draws the steps; empty where the definition is not known.
func graphOf(s seen) template.HTML {
	if s.workflow == nil {
		return ""
	}
	svg, _ := drawn(s.order, s.edges, "The steps of "+s.job.ID) // What cannot be drawn is left out.
	return svg
}

// facts are the key figures of a job.
type facts struct {
	// Current: new jobs get the same definition.
	Current bool
	// Took is how long the job took, or takes so far; Worked how long agents worked.
	Took, Worked time.Duration
	// Late is how much later than its workflow expects it is; zero: it is not.
	Late time.Duration
	// Attempts is how many were made.
	Attempts int
	// Cost is its cost on AWS so far; nil: not known.
	Cost *costData
	// Commands are the same by command.
	Commands []string
}

func factsOf(s seen, line timeline) facts {
	f := facts{Current: s.current == "" || s.current == s.job.Definition, Worked: line.Worked}
	end := s.now
	if s.job.FinishedAt != nil {
		end = *s.job.FinishedAt
	}
	begun := s.job.CreatedAt
	if s.job.StartAt != nil && s.job.StartAt.After(begun) {
		begun = *s.job.StartAt
	}
	f.Took = max(0, end.Sub(begun))
	if by := s.job.ExpectBy; by != nil && end.After(*by) {
		f.Late = end.Sub(*by)
	}
	for _, step := range s.job.Steps {
		n := step.Attempt
		if step.Undo != nil {
			n = max(n, step.Undo.Attempt)
		}
		f.Attempts += n
	}
	if s.job.Spent != nil {
		f.Cost = costOf(*s.job.Spent)
	}
	return f
}

// commandsOf are the commands that show the job and carry out its verbs.
func commandsOf(s seen, flags string) []string {
	all := []string{"makegood get " + s.job.ID, "makegood watch " + s.job.ID}
	for _, o := range s.offers.Verbs {
		if o.Granted() && o.Ask != domain.AskWake {
			all = append(all, strings.TrimSpace("makegood "+o.Ask+" "+s.job.ID+" "+domain.VerbOf(o.Ask).Flag))
		}
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i] + " " + flags)
	}
	return all
}

// stand is the remaining effect of a step of a job that was turned round, or stopped.
type stand struct {
	Step, Shape, Says string
	// Stands: the effect remains, or may; Output is the step's output.
	Stands bool
	Output string
	At     *time.Time
}

// standsOf lists the effects that remain of a job that stopped or is undone, first, and the undone ones.
func standsOf(s seen) []stand {
	if s.job.ProcessState != makegood.JobError && !back(s.job) {
		return nil
	}
	var all []stand
	for _, step := range s.job.Steps {
		if is, any := standOf(s, step); any {
			all = append(all, is)
		}
	}
	slices.SortStableFunc(all, func(a, b stand) int {
		return cmp.Compare(boolRank(!a.Stands), boolRank(!b.Stands))
	})
	return all
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// standOf returns the remaining effect of one step; any is false if the step never ran.
func standOf(s seen, step makegood.JobStep) (is stand, any bool) {
	is = stand{Step: step.Name}
	mayBe := step.State == makegood.StepFailed && step.Error != nil && step.Error.Applied != makegood.AppliedNo || step.State == makegood.StepWithdrawn && step.StartedAt != nil
	if o, known := domain.OffersOfStep(s.offers, step.Name, false); known {
		unknown, _ := domain.StepOffer(o, domain.AskSettleNotDone)
		mayBe = mayBe || unknown.Granted()
	}
	switch {
	case step.Undo != nil && step.Undo.State == makegood.StepDone:
		is.Shape, is.Says, is.At = "undone", "undone", step.Undo.FinishedAt
	case step.Undo != nil && step.Undo.State == makegood.StepSkipped && step.Undo.Settled != nil:
		is.Shape, is.Says, is.Stands = "skipped", "not undone: settled by hand", true
	case step.Undo != nil && step.Undo.State == makegood.StepFailed:
		is.Shape, is.Says, is.Stands = "error", "stands: its undo was given up", true
	case step.State == makegood.StepDone && hasNoUndo(s, step):
		is.Shape, is.Says = "processed", "done, and has no undo"
	case step.State == makegood.StepDone:
		is.Shape, is.Says, is.Stands = "processed", "stands", true
	case mayBe:
		is.Shape, is.Says, is.Stands = "error", "may stand: the effect of its attempts is unknown", true
	default:
		return is, false
	}
	if is.Stands && given(step.Output) {
		is.Output = cut(string(step.Output), 60)
	}
	return is, true
}

// hasNoUndo reports whether a step cannot be undone at all.
func hasNoUndo(s seen, step makegood.JobStep) bool {
	if step.Undo != nil && (step.Undo.State == makegood.StepIrreversible || step.Undo.State == makegood.StepSkipped) {
		return true
	}
	def := stepOf(s, step.Name)
	return def != nil && !domain.CanUndo(*def)
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
