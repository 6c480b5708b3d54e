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
	const keeper, plan, turns = "gate/keeper.go", "gate/plan.go", "gate/turns.go"
	return proof.Bugs([][4]string{
		{"a look frees a permit that was renewed meanwhile", keeper, "return slices.Contains(ended, t) })", "return slices.ContainsFunc(ended, t.Same) })"},
		{"a permit for a save to come is free", keeper, "j.Rev > t.Rev && !opened", "!opened"},
		{"a permit is not renewed for a later save", keeper, "if !stored {", "if t.Rev == 0 {"},
		{"permits above a lowered limit do not count", plan, "\t\t\tif n >= below {\n", "\t\t\tif n >= below && n < most {\n"},
		{"a process that enters a ticket does not look again", keeper, "\t\t\tentered = true\n\t\t\tif err := k.pass(ctx, agent, most, over(nil)); err != nil {\n\t\t\t\treturn false, err\n\t\t\t}\n\t\t\tcontinue\n", "\t\t\treturn false, nil\n"},
		{"a process that frees a permit does not look again", keeper, "\tvar admitted []job.Ticket\n\tdefer func() { k.tell(ctx, agent, admitted) }()\n\tfor range maxPasses {\n", "\tvar admitted []job.Ticket\n\tdefer func() { k.tell(ctx, agent, admitted) }()\n\tfor range 1 {\n"},
		{"tenants take no turns", turns, "k.first(ctx, agent, head, after.Last[class])", "k.first(ctx, agent, head, \"\")"},
		{"the circle of tenants does not close", turns, "\t\tt = head\n", "\t\tt = job.Ticket{}\n"},
		{"a ticket that has risen waits for its own class", turns, "to := its.ClassAt(domain.Instant(k.config.Now()))", "to := its.ClassAt(domain.Instant(its.Since))"},
		{"tickets that have risen take no turns", turns, "sooner(its.Crowd(), t.Crowd(), after.Risen[to])", "to == risen && sooner(its.Crowd(), t.Crowd(), \"\")"},
		{"the turns are those of a permit that was given before", turns, "p.Turns.Given > after.Given", "p.Turns.Given < after.Given || after.Given == 0"},
		{"a permit does not say whose turn is next", keeper, "m.is.Turns = after", "m.is.Turns.Given = after.Given"},
		{"one that looks goes before its turn", keeper, "if len(g.Waiting) > 0 { // Even", "if len(g.Waiting) > 0 && !g.Waiting[0].Same(t) { // Even"},
	})
}

var foundBy = regexp.MustCompile(`(?s)--- FAIL: (Test\w+).*?(?:_test\.go:\d+|panic): ([^\n]+)`)

// Each is found by the courses of many seeds, or by every order of calls.
func TestPlantedBugsAreFound(t *testing.T) {
	proof.Hunt{Bugs: bugs(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundBy, Args: []string{"-failfast", "-run", "^Test(A|Every)", "."}}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of the gate are found", len(bugs())))
}
