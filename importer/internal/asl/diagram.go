package asl

import (
	"fmt"
	"slices"
	"strings"
)

// A diagram says what holds on each way through a state machine: a tree of decisions in the order in which they fall,
// with a value at each end. Equal trees are the same, and a decision that changes nothing is left out.
type diagram struct {
	// decision is nil at an end.
	decision *decision
	// ways has one for each outcome of the decision.
	ways []*diagram
	// leaf is the value at an end; nil: no way leads there.
	leaf *value
	id   int
}

// decision is where the way forks: a Choice, or a task with a Catch.
type decision struct {
	// number orders decisions as they fall.
	number int
	// outcomes are the branches of the decision, each with its condition: a jq expression that gives true or false. Exactly
	// one condition holds. An empty condition comes last, and holds if all conditions before it are false.
	outcomes []outcome
	// ordered: of several conditions that hold the first counts.
	ordered bool
}

// outcome is one of a decision.
type outcome struct {
	// yes is the condition, and no its opposite where that reads better than not. nil: none of the others.
	yes, no *value
}

// maxWays is how many ends the data of one state may have. Beyond, they become one value that says itself which it is.
const maxWays = 12

func (p *pool) leaf(v *value) *diagram {
	id := -1
	if v != nil {
		id = v.id
	}
	return p.intern(fmt.Sprintf("leaf %d", id), diagram{leaf: v})
}

func (p *pool) nowhere() *diagram { return p.leaf(nil) }

func (p *pool) intern(key string, d diagram) *diagram {
	if known := p.diagrams[key]; known != nil {
		return known
	}
	d.id = len(p.diagrams) + 1
	p.diagrams[key] = &d
	return &d
}

func (p *pool) fork(of *decision, ways []*diagram) *diagram {
	if !slices.ContainsFunc(ways, func(w *diagram) bool { return w != ways[0] }) {
		return ways[0]
	}
	var key strings.Builder
	fmt.Fprintf(&key, "fork %d", of.number)
	for _, w := range ways {
		fmt.Fprintf(&key, " %d", w.id)
	}
	return p.intern(key.String(), diagram{decision: of, ways: slices.Clone(ways)})
}

// mapLeaves replaces the value at each end that some way leads to.
func (p *pool) mapLeaves(d *diagram, f func(*value) *value) *diagram { return p.remade(d, nil, f) }

// assume is d if these decisions have these outcomes.
func (p *pool) assume(d *diagram, outcomes map[*decision]int) *diagram {
	return p.remade(d, outcomes, func(v *value) *value { return v })
}

func (p *pool) remade(d *diagram, outcomes map[*decision]int, f func(*value) *value) *diagram {
	done := map[*diagram]*diagram{}
	var walk func(d *diagram) *diagram
	walk = func(d *diagram) *diagram {
		if known := done[d]; known != nil {
			return known
		}
		mapped := d
		switch outcome, known := outcomes[d.decision]; {
		case known:
			mapped = walk(d.ways[outcome])
		case d.decision != nil:
			ways := make([]*diagram, len(d.ways))
			for i, w := range d.ways {
				ways[i] = walk(w)
			}
			mapped = p.fork(d.decision, ways)
		case d.leaf != nil:
			mapped = p.leaf(f(d.leaf))
		}
		done[d] = mapped
		return mapped
	}
	return walk(d)
}

// combine walks through two diagrams at once. f is given two ends, of which either may be nil.
func (p *pool) combine(a, b *diagram, f func(a, b *value) *value) *diagram {
	type pair struct{ a, b *diagram }
	done := map[pair]*diagram{}
	var walk func(a, b *diagram) *diagram
	walk = func(a, b *diagram) *diagram {
		if known := done[pair{a, b}]; known != nil {
			return known
		}
		var joined *diagram
		if a.decision == nil && b.decision == nil {
			joined = p.leaf(f(a.leaf, b.leaf))
		} else {
			first := a.decision
			if first == nil || b.decision != nil && b.decision.number < first.number {
				first = b.decision
			}
			ways := make([]*diagram, len(first.outcomes))
			for i := range ways {
				ways[i] = walk(a.way(first, i), b.way(first, i))
			}
			joined = p.fork(first, ways)
		}
		done[pair{a, b}] = joined
		return joined
	}
	return walk(a, b)
}

// way is what is left of a diagram when a decision has this outcome.
func (d *diagram) way(of *decision, outcome int) *diagram {
	if d.decision == of {
		return d.ways[outcome]
	}
	return d
}

// unite is a where a way leads, and else b.
func (p *pool) unite(a, b *diagram) *diagram {
	return p.combine(a, b, func(a, b *value) *value {
		if a != nil {
			return a
		}
		return b
	})
}

// both is where ways lead in both: the value is that of a.
func (p *pool) both(a, b *diagram) *diagram {
	return p.combine(a, b, func(a, b *value) *value {
		if b == nil {
			return nil
		}
		return a
	})
}

// where is d on the ways on which a decision, which falls after all of d, has this outcome.
func (p *pool) where(d *diagram, of *decision, outcome int) *diagram {
	ways := make([]*diagram, len(of.outcomes))
	for i := range ways {
		ways[i] = p.nowhere()
	}
	ways[outcome] = p.leaf(p.constant("true"))
	return p.both(d, p.fork(of, ways))
}

// reached forgets the values.
func (p *pool) reached(d *diagram) *diagram {
	return p.mapLeaves(d, func(*value) *value { return p.constant("true") })
}

// onlyLeaf is the one value that d has wherever a way leads; nil: there are several, or none.
func onlyLeaf(d *diagram) *value {
	if ends := leaves(d); len(ends) == 1 {
		return ends[0]
	}
	return nil
}

// leaves are the different values of d.
func leaves(d *diagram) []*value {
	var ends []*value
	seen := map[*diagram]bool{}
	var walk func(d *diagram)
	walk = func(d *diagram) {
		if seen[d] {
			return
		}
		seen[d] = true
		for _, w := range d.ways {
			walk(w)
		}
		if d.leaf != nil && !slices.Contains(ends, d.leaf) {
			ends = append(ends, d.leaf)
		}
	}
	walk(d)
	return ends
}

// writeChoice writes which of its values d is. Where no way leads any will do.
func (p *pool) writeChoice(d *diagram) string {
	return p.once(d, func() (string, bool) { return p.writeWays(d), false }).text
}

func (p *pool) writeWays(d *diagram) string {
	if only := onlyLeaf(d); only != nil {
		return p.operand(only)
	}
	var conditions, values []string
	for i, w := range d.ways {
		if len(leaves(w)) == 0 {
			continue
		}
		conditions = append(conditions, p.holds(d.decision, i))
		values = append(values, p.writeChoice(w))
	}
	if len(values) == 1 {
		return values[0]
	}
	var out strings.Builder
	for i, v := range values {
		switch {
		case i == 0:
			fmt.Fprintf(&out, "if %s then %s", conditions[i], v)
		case i == len(values)-1:
			fmt.Fprintf(&out, " else %s end", v)
		default:
			fmt.Fprintf(&out, " elif %s then %s", conditions[i], v)
		}
	}
	return out.String()
}

// condition writes when a way leads to an end of d, as jq; empty: always.
func (p *pool) condition(d *diagram) string {
	d = p.reached(d)
	if d.decision == nil {
		if d.leaf == nil {
			return "false"
		}
		return ""
	}
	return p.once(conditionOf{d}, func() (string, bool) { return p.disjunction(d), false }).text
}

// conditionOf is the key of a diagram's condition, which is another text than its choice.
type conditionOf struct{ *diagram }

// disjunction joins the ways of d that lead to an end; those that go on alike are one.
func (p *pool) disjunction(d *diagram) string {
	var terms []string
	var done []*diagram
	for i, w := range d.ways {
		if slices.Contains(done, w) || len(leaves(w)) == 0 {
			continue
		}
		done = append(done, w)
		var alike []int
		for j := i; j < len(d.ways); j++ {
			if d.ways[j] == w {
				alike = append(alike, j)
			}
		}
		term := p.anyOf(d.decision, alike)
		if rest := p.condition(w); rest != "" {
			term += " and " + parenthesized(rest)
		}
		terms = append(terms, term)
	}
	if len(terms) == 1 {
		return terms[0]
	}
	for i, t := range terms {
		if strings.Contains(t, " and ") {
			terms[i] = "(" + t + ")"
		}
	}
	return strings.Join(terms, " or ")
}

func parenthesized(text string) string {
	if strings.Contains(text, " or ") && !(strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")")) || strings.Contains(text, ") or (") {
		return "(" + text + ")"
	}
	return text
}

// anyOf writes that a decision has one of these outcomes.
func (p *pool) anyOf(of *decision, outcomes []int) string {
	if rest := without(len(of.outcomes), outcomes); len(rest) == 1 && of.outcomes[rest[0]].yes != nil {
		return p.allBut(of, rest[0])
	}
	terms := make([]string, len(outcomes))
	for i, o := range outcomes {
		terms[i] = p.holds(of, o)
	}
	return together(terms, " or ")
}

func together(terms []string, word string) string {
	if len(terms) == 1 {
		return terms[0]
	}
	return "(" + strings.Join(terms, word) + ")"
}

// allBut writes that a decision has any outcome but one, which has a condition.
func (p *pool) allBut(of *decision, outcome int) string {
	var terms []string
	if of.ordered {
		for _, earlier := range of.outcomes[:outcome] {
			terms = append(terms, p.operand(earlier.yes))
		}
	}
	return together(append(terms, p.holdsNot(of.outcomes[outcome])), " or ")
}

// without are the numbers below n that are not among these.
func without(n int, these []int) (rest []int) {
	for i := range n {
		if !slices.Contains(these, i) {
			rest = append(rest, i)
		}
	}
	return rest
}

// holds writes that a decision has an outcome.
func (p *pool) holds(of *decision, outcome int) string {
	o := of.outcomes[outcome]
	if o.yes != nil && (!of.ordered || outcome == 0) {
		return p.operand(o.yes)
	}
	var terms []string
	for i, earlier := range of.outcomes {
		if i == outcome {
			if o.yes != nil {
				terms = append(terms, p.operand(o.yes))
				break
			}
			continue
		}
		if earlier.yes != nil {
			terms = append(terms, p.holdsNot(earlier))
		}
	}
	return together(terms, " and ")
}

func (p *pool) holdsNot(o outcome) string {
	if o.no != nil {
		return p.operand(o.no)
	}
	return "(" + p.operand(o.yes) + " | not)"
}
