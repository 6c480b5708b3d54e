package gate

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// bugs are wrong versions of a gate.
func bugs() []proof.Bug {
	const keeper, look, plan, turns = "gate/keeper.go", "gate/look.go", "gate/plan.go", "gate/turns.go"
	return proof.Bugs([][4]string{
		{"a look frees a permit that was renewed meanwhile", look, "return slices.Contains(ended, t) }", "return slices.ContainsFunc(ended, t.Same) }"},
		{"a permit for a save to come is free", look, "j.Rev > t.Rev && !opened", "!opened"},
		{"a permit is not renewed for a later save", keeper, "i >= 0 && permits", "i >= 0 && t.Rev == 0 && permits"},
		{"permits above a lowered limit do not count", plan, "\t\t\tif n >= below {\n", "\t\t\tif n >= below && n < most {\n"},
		{"a process that enters a ticket does not look again", keeper, "\t\t\tentered = true\n\t\t\tif err := k.pass(ctx, agent, l, over(nil), t.Same); err != nil {\n\t\t\t\treturn false, err\n\t\t\t}\n\t\t\tcontinue\n", "\t\t\treturn false, nil\n"},
		{"a process that frees a permit does not look again", keeper, "\tmoved := false\n\tfor range maxPasses {\n", "\tmoved := false\n\tfor range 1 {\n"},
		{"a token need not cool", keeper, "l.Burst && (!now", "l.Burst || (!now"},
		{"the token of a slow hint is taken", keeper, "\t\tif p.Told {\n\t\t\tasked++\n", "\t\tif p.Told && p.At.IsZero() {\n\t\t\tasked++\n"},
		{"a late attempt keeps its token", keeper, "m.token.is.Told = false", "m.token.is.Told = true"},
		{"an attempt with a permit needs no token", plan, "(permit || l.Most == 0 && ", "(permit && l.Most == 0 || l.Most == 0 && "},
		{"a ticket that enters as the first is not woken", keeper, "over(nil), t.Same); err", "over(nil), func(job.Ticket) bool { return false }); err"},
		{"the next is not woken by the one that was admitted", keeper, "moved = true //", "moved = false //"},
		{"the next is not woken when the first is withdrawn", keeper, "return len(waited) > 0 })", "return false })"},
		{"tenants take no turns", turns, "k.first(ctx, agent, head, after.Last[class])", "k.first(ctx, agent, head, \"\")"},
		{"the circle of tenants does not close", turns, "\t\tt = head\n", "\t\tt = job.Ticket{}\n"},
		{"a ticket that has risen waits for its own class", turns, "to := its.ClassAt(domain.Instant(k.config.Now()))", "to := its.ClassAt(domain.Instant(its.Since))"},
		{"tickets that have risen take no turns", turns, "sooner(its.Crowd(), t.Crowd(), after.Risen[to])", "to == risen && sooner(its.Crowd(), t.Crowd(), \"\")"},
		{"the turns are those of a permit that was given before", turns, "p.Turns.Given > after.Given", "p.Turns.Given < after.Given || after.Given == 0"},
		{"a permit does not say whose turn is next", keeper, "c.is.Turns = after", "c.is.Turns.Given = after.Given"},
		{"one that looks goes before its turn", keeper, "len(g.Waiting) > 0 { // Even", "len(g.Waiting) > 0 && !g.Waiting[0].Same(t) { // Even"},
	})
}

var foundBy = regexp.MustCompile(`(?s)--- FAIL: (Test\w+).*?(?:_test\.go:\d+|panic): ([^\n]+)`)

// Each is found by the courses of many seeds, or by every order of calls.
func TestPlantedBugsAreFound(t *testing.T) {
	proof.Hunt{Bugs: bugs(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundBy, Args: []string{"-failfast", "-run", "^Test(A|Every)", "."}}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of the gate are found", len(bugs())))
}
