package workflowfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
)

// whyRequired is the value of an approval's why if every answer needs a reason.
const whyRequired = "required"

// onAnswer reads the consequences of answers: a mapping with answers as keys.
func (r reader) onAnswer(n *yaml.Node, path string) map[string]makegood.AnswerDo {
	r.at(path, n)
	if !r.plain(n, path) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(path, "onAnswer must be a mapping, such as {reject: undo}, got %s", describe(n))
		return nil
	}
	all := map[string]makegood.AnswerDo{}
	for _, m := range r.members(n, path) {
		r.lines[m.path] = m.line
		text := r.text(m.value, m.path)
		if text == "" {
			continue
		}
		var do makegood.AnswerDo
		if err := do.UnmarshalText([]byte(text)); err != nil {
			r.wrong(m.path, "%v", err)
		}
		all[m.key] = do
	}
	return all
}

// onAnswer checks the consequences of answers: the approval takes each answer, and not all may lead away.
func (r rules) onAnswer(path string, s makegood.Step) {
	if s.OnAnswer == nil {
		return
	}
	if s.Agent != makegood.AgentApproval {
		r.add(path, "only a step of agent %s is answered: step %q is of agent %q", makegood.AgentApproval, s.Name, s.Agent)
		return
	}
	takes := choicesOf(s.With)
	if takes == nil {
		return // Of choices that are none enough was said.
	}
	for _, answer := range slices.Sorted(maps.Keys(s.OnAnswer)) {
		place := join(path, answer)
		if !slices.Contains(takes, answer) {
			r.add(place, "%q is none of the choices of step %q: %q%s", answer, s.Name, takes, suggest(answer, takes))
		}
		switch do := s.OnAnswer[answer]; do.Action {
		case makegood.AnswerUndo, makegood.AnswerStop, makegood.AnswerFail:
		case makegood.AnswerGoto:
			r.target(place, s, do.Step)
		case "":
			r.add(place, "what to do is missing: want undo, stop, fail or goto STEP")
		default:
			r.add(place, "%q is not one of undo, stop, fail and goto STEP", do.Action)
		}
	}
}

// choicesOf are the answers that the with of an approval lists; nil: it lists none.
func choicesOf(with json.RawMessage) []string {
	var says struct {
		Choices []string `json:"choices"`
	}
	if json.Unmarshal(with, &says) != nil {
		return nil
	}
	return says.Choices
}

// why checks for which answers an approval wants to know why. It is constant, as the choices are.
func (r rules) why(path string, value json.RawMessage, takes []string) {
	var text string
	var some []string
	switch {
	case value == nil:
	case json.Unmarshal(value, &text) == nil:
		if text != whyRequired {
			r.add(path, "%q is not for which answers it must be said why: want %s, or a list of choices such as [reject]", clip(text), whyRequired)
		}
	case json.Unmarshal(value, &some) != nil:
		r.add(path, "must be %s, or a list of choices such as [reject], got %s", whyRequired, clip(string(value)))
	default:
		for i, answer := range some {
			if takes != nil && !slices.Contains(takes, answer) {
				r.add(fmt.Sprintf("%s[%d]", path, i), "%q is none of the choices: %q%s", answer, takes, suggest(answer, takes))
			}
		}
	}
}
