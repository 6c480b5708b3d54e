package asl

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// mapping is a YAML mapping that is being written.
type mapping struct{ yaml.Node }

func newMapping() *mapping { return &mapping{yaml.Node{Kind: yaml.MappingNode}} }

func (m *mapping) add(name string, v *yaml.Node) {
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, v)
}

// text adds a text, unless it is empty.
func (m *mapping) text(name, text string) {
	if text != "" {
		m.add(name, textNode(text))
	}
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func plainNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// yaml writes the workflow file.
func (t *translator) yaml(d definition) ([]byte, error) {
	m := newMapping()
	m.text("name", t.workflow)
	m.Content[0].HeadComment = "# Written by makegood-import from a state machine of AWS Step Functions. " + t.report.Workflow + ".import.md beside it says what became of each state."
	if n := d.body.get("TimeoutSeconds"); n != nil && n.kind == isNumber {
		if seconds, err := strconv.Atoi(n.text); err == nil && seconds > 0 {
			m.text("timeout", length(min(seconds, int(limits.MaxJobTimeout/time.Second))))
		}
	}
	if len(t.steps) == 0 {
		// A workflow has one step at least.
		t.steps = append(t.steps, &step{
			name: t.names.unique("nothing", "nothing"), agent: makegood.AgentWait, do: stubNone,
			with: t.object([]string{"for"}, []*value{t.text("1s")}),
		})
		t.report.Everywhere = append(t.report.Everywhere, "no state needs a step, and a workflow has one at least: the step "+t.steps[0].name+" waits a second")
	}
	steps := &yaml.Node{Kind: yaml.SequenceNode}
	for i, s := range t.steps {
		steps.Content = append(steps.Content, t.stepNode(i, s))
	}
	m.add("steps", steps)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&m.Node); err != nil {
		return nil, fmt.Errorf("write the workflow: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

func (t *translator) stepNode(i int, s *step) *yaml.Node {
	m := newMapping()
	m.text("name", s.name)
	if s.state != nil {
		m.HeadComment = "# " + s.state.kind + " " + oneLine(s.state.name)
	}
	if s.overItems != nil {
		m.add("map", t.mapNode(s.overItems))
	}
	m.text("agent", s.agent)
	if s.action != s.name {
		m.text("action", s.action)
	}
	if s.only {
		m.text("only", makegood.OnlyOnError)
	} else if needs := t.needs(s); i == 0 || len(needs) != 1 || needs[0] != t.steps[i-1].name {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, need := range needs {
			list.Content = append(list.Content, textNode(need))
		}
		m.add("needs", list)
	}
	if when := t.when(s); when != "" {
		m.text("when", "${ "+when+" }")
	}
	given := ".input"
	if s.overItems != nil {
		given = ".item"
	}
	if s.with != nil && (s.with.form != formPath || s.with.text != given) {
		m.add("with", t.withNode(s.with))
	}
	m.text("timeout", s.timeout)
	m.text("heartbeat", s.heartbeat)
	if s.retry != nil {
		m.add("retry", retryNode(s.retry))
	}
	t.routeNodes(m, s)
	if s.repeat != nil {
		again := newMapping()
		again.text("until", "${ "+s.repeat.until+" }")
		again.text("every", s.repeat.every)
		again.text("for", "365d")
		m.add("repeat", &again.Node)
	}
	t.undoNode(m, s)
	return &m.Node
}

func (t *translator) mapNode(o *overItems) *yaml.Node {
	m := newMapping()
	m.text("over", "${ "+bare(t.expression(o.over))+" }")
	if o.concurrency > 0 {
		m.add("concurrency", plainNode(strconv.Itoa(o.concurrency)))
	}
	if o.batch > 0 {
		m.add("batch", plainNode(strconv.Itoa(o.batch)))
	}
	may := newMapping()
	may.Style = yaml.FlowStyle
	if o.items > 0 {
		may.add("items", plainNode(strconv.Itoa(o.items)))
	}
	if o.share > 0 {
		may.add("share", plainNode(strconv.FormatFloat(o.share, 'f', -1, 64)))
		may.add("after", plainNode(strconv.Itoa(o.after)))
	}
	if len(may.Content) > 0 {
		m.add("tolerate", &may.Node)
	}
	if o.manifest {
		m.text("outputs", string(makegood.OutputsManifest))
	}
	return &m.Node
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// needs names the steps behind which a step begins, without those that others among them follow anyway.
func (t *translator) needs(s *step) []string {
	behind := t.followers
	var needs []string
	for _, candidate := range t.steps {
		if !slices.Contains(s.tails, candidate) {
			continue
		}
		if !slices.ContainsFunc(s.tails, func(other *step) bool { return behind[candidate][other] }) {
			needs = append(needs, candidate.name)
		}
	}
	return needs
}

// when is the condition of a step; empty: there is none.
func (t *translator) when(s *step) string {
	if s.only {
		return ""
	}
	var terms []string
	for _, reach := range s.reach {
		if condition := t.condition(reach); condition != "" {
			terms = append(terms, condition)
		}
	}
	if len(terms) == 1 {
		return bare(terms[0])
	}
	for i, term := range terms {
		terms[i] = "(" + bare(term) + ")"
	}
	return strings.Join(terms, " and ")
}

func retryNode(r *retry) *yaml.Node {
	m := newMapping()
	m.Style = yaml.FlowStyle
	m.add("attempts", plainNode(strconv.Itoa(r.attempts)))
	m.text("backoff", r.backoff)
	m.text("max", r.max)
	return &m.Node
}

// routeNodes adds onError: the routes to which an error can come.
func (t *translator) routeNodes(m *mapping, s *step) {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	var kept []route
	for _, r := range s.routes {
		hidden := slices.ContainsFunc(kept, func(above route) bool {
			return (above.kind == "*" || above.kind == r.kind) && (above.do != "retry" || r.do == "retry")
		})
		if hidden || len(kept) == limits.MaxRoutes {
			continue
		}
		kept = append(kept, r)
		one := newMapping()
		one.Style = yaml.FlowStyle
		one.text("kind", r.kind)
		do := r.do
		if r.target != nil {
			do += " " + t.stepOf[r.target].name
		}
		one.text("do", do)
		if r.retry != nil {
			one.add("retry", retryNode(r.retry))
		}
		list.Content = append(list.Content, &one.Node)
	}
	if len(kept) > 0 {
		m.add("onError", list)
	}
}

func (t *translator) undoNode(m *mapping, s *step) {
	switch {
	case s.agent == makegood.AgentWorkflow:
		if !s.undoesChild {
			m.text("undo", "none")
		}
	case !slices.ContainsFunc(t.steps, func(s *step) bool { return s.undo != nil || s.undoesChild }) || domain.WaitsByItself(s.agent):
	case s.undo == nil:
		m.text("undo", "none")
	default:
		u := newMapping()
		if s.undo.agent != s.agent {
			u.text("agent", s.undo.agent)
		}
		u.text("action", s.undo.action)
		if s.undo.with != s.with {
			u.add("with", t.withNode(s.undo.with))
		}
		u.add("retry", retryNode(s.undo.retry))
		m.add("undo", &u.Node)
	}
}

// withNode writes a with. One that is null would stand for the job's input.
func (t *translator) withNode(v *value) *yaml.Node {
	if isAbsent(v) {
		return textNode("${ null }")
	}
	return t.filled(v)
}

// filled writes a value as it stands in with: what is known now is written out, and the rest are expressions.
func (t *translator) filled(v *value) *yaml.Node {
	switch v.form {
	case formObject:
		if slices.ContainsFunc(v.names, func(name string) bool { return strings.Contains(name, "${") }) {
			break
		}
		m := newMapping()
		if len(v.names) == 0 {
			m.Style = yaml.FlowStyle
		}
		for i, name := range v.names {
			m.add(name, t.filled(v.parts[i]))
			m.Content[2*i].Tag = "!!str"
		}
		return &m.Node
	case formList:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		if len(v.parts) == 0 {
			list.Style = yaml.FlowStyle
		}
		for _, part := range v.parts {
			list.Content = append(list.Content, t.filled(part))
		}
		return list
	case formConstant:
		if literal, is := literalText(v); is {
			return textNode(escaped(literal))
		}
		return plainNode(v.text)
	case formSecret:
		return textNode("${ secret(\"" + v.text + "\") }")
	case formText:
		var out strings.Builder
		for _, part := range v.parts {
			if literal, is := literalText(part); is {
				literal = escaped(literal)
				if before, dollar := strings.CutSuffix(literal, "$"); dollar {
					literal = before + `${ "$" }` // else it would quote the expression behind it
				}
				out.WriteString(literal)
			} else {
				out.WriteString("${ " + bare(t.expression(part)) + " }")
			}
		}
		return textNode(out.String())
	}
	return textNode("${ " + bare(t.expression(v)) + " }")
}

// escaped quotes what would be an expression.
func escaped(text string) string { return strings.ReplaceAll(text, "${", "$${") }
