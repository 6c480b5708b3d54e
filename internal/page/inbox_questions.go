package page

import (
	"context"
	"html/template"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// askedGroup is jobs that wait for an answer to the same question.
type askedGroup struct {
	api.Group
	Workflow, Step string
	// Question is the question of the job that has waited longest, Choices are its answers.
	Question string
	Choices  []string
}

// ID is the id of its element.
func (g askedGroup) ID() string { return "q-" + g.Workflow + "--" + g.Step }

// See is the query of the list of its jobs.
func (g askedGroup) See() template.URL {
	return encoded(protocol.FilterValues(api.Filter{State: api.JobWaiting, Workflow: g.Workflow, Step: g.Step}))
}

// Try is the query of the dry run of giving its jobs an answer.
func (g askedGroup) Try(answer string) template.URL {
	c := choice{Ask: askAnswer, Filter: api.Filter{State: api.JobWaiting, Workflow: g.Workflow, Step: g.Step}, Step: g.Step, Answer: answer}
	return encoded(c.query())
}

// asked groups the jobs that wait for an answer by workflow and step, if they match the words. A job that asks two
// questions is in two groups.
func (p *Page) asked(ctx context.Context, words string) ([]askedGroup, error) {
	counted, _, err := p.alike(ctx, api.Filter{State: api.JobWaiting}, api.ByWorkflow, api.ByStep)
	if err != nil {
		return nil, err
	}
	var groups []askedGroup
	for _, g := range counted.Groups {
		asked := inboxGroup{Group: g, Workflow: g.Values[0], Step: g.Values[1]}
		if asked.has(words) && len(groups) < maxGroups {
			groups = append(groups, askedGroup{Group: g, Workflow: asked.Workflow, Step: asked.Step})
		}
	}
	someAtOnce(min(len(groups), maxLooked), func(i int) {
		if offers, err := p.Jobs.Offers(ctx, groups[i].Example); err == nil {
			groups[i].learn(offers)
		} // One that is gone, or cannot be read, is shown all the same.
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// Where a job asks one question, another step may be under way, which is no question.
	return slices.DeleteFunc(groups, func(g askedGroup) bool { return g.Choices != nil && len(g.Choices) == 0 }), nil
}

// learn takes the question and its answers from the offers of one job of the group.
func (g *askedGroup) learn(offers makegood.Offers) {
	g.Choices = []string{}
	for _, o := range offers.Steps {
		if o.Step != g.Step || len(o.Choices) == 0 {
			continue
		}
		if answer, _ := domain.StepOffer(o, domain.AskComplete); answer.Granted() {
			g.Question, g.Choices = strings.TrimSpace(o.Question), o.Choices
		}
	}
}
