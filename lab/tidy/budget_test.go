package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The budget of the tree. A part that is larger has a row below; it may not grow past the figure of its row.
const (
	// maxPackageLines is how many lines of Go a package may have, without its tests.
	maxPackageLines = 2500
	// maxOurImports is how many of our packages a package may import, without its tests.
	maxOurImports = 20
	// maxParameters is how many parameters a function may have.
	maxParameters = 5
	// maxProductLines is how many lines of Go the product may have, without its tests: 101,346 on 2026-11-25, and 500
	// more. A product that has become smaller gets a smaller figure.
	maxProductLines = 111_074
)

// excess is a part that is over the budget: its figure when the row was written, and the reason.
type excess struct {
	figure int
	why    string
}

var packageLines = map[string]excess{
	"command":                    {10023, "every verb of the command is a file, and half of it is help"},
	"importer/internal/asl":      {6130, "all of the language of state machines, and its functions"},
	"internal/httpapi":           {3215, "routes with what each says of itself in the document"},
	"internal/machine":           {7150, "the core: one state machine, in three layers of files"},
	"internal/page":              {6905, "every view of the page is a file"},
	"internal/scheduler":         {5848, "the worklist, submissions and readers of jobs"},
	"internal/store/dynamostore": {3657, "an adapter of the whole port, with its transactions"},
	"internal/store/sqlitestore": {3796, "an adapter of the whole port, with schemas of earlier releases"},
	"internal/store/storetest":   {5232, "a test for every rule of the port"},
	"internal/workflowfile":      {5767, "reader, rules, JSON Schema and compiler, with the table of fields that feeds them"},
	"lab/modelcheck":             {5047, "small models of everything that a job can do"},
	"lab/oracle":                 {2817, "the docs told a second time, which shares nothing with the core"},
	"lab/sim":                    {8570, "a world with every fault"},
}

var ourImports = map[string]excess{
	"command":           {37, "a main in all but name"},
	"internal/deployed": {37, "wires all of it for AWS"},
	"internal/embedded": {34, "wires all of it in one process"},
	"internal/httpapi":  {21, "a route for everything that can be asked"},
	"lab/e2e/cost":      {23, "wires the functions with a meter between"},
	"lab/sim":           {29, "wires all of it in a simulated world"},
}

// parameters has functions as FOLDER.NAME; a method has no receiver in its name.
var parameters = map[string]excess{
	"agent/sqlitefence.write":       {6, "an attempt, its key and the output kept under it"},
	"client.call":                   {6, "a request and the two places of its answer"},
	"examples/ledger.compareOne":    {6, "two ledgers, and where in the run they are compared"},
	"examples/ledger.show":          {6, "the flags of the example"},
	"importer/internal/asl.choose1": {6, "one decision of a walk and its ways out"},
	"importer/internal/asl.hand":    {6, "one way out of a step, and the shape of its input"},
	"internal/view.Details":         {6, "a page of a list, and who may complete its steps"},
	"internal/workflowfile.key":     {6, "a call of jq, its parts and its scope"},
	"internal/workflowfile.loop":    {6, "a loop of jq, its parts and its scope"},
}

// besideProduct are the folders of the tree that are no part of the product.
var besideProduct = []string{"lab", "importer", "kits", "examples"}

// overBudget returns findings: parts that are larger than limit, or than their row in allowed, and rows that no part
// needs any more.
func overBudget(sizes map[string]int, limit int, allowed map[string]excess, unit string) []string {
	var found []string
	for _, part := range slices.Sorted(maps.Keys(sizes)) {
		row, known := allowed[part]
		switch size := sizes[part]; {
		case known && size <= limit:
			found = append(found, fmt.Sprintf("%s: %d %s: it needs no row in the budget (lab/tidy) any more", part, size, unit))
		case size > max(limit, row.figure):
			found = append(found, fmt.Sprintf("%s: %d %s, the limit is %d (lab/tidy/budget_test.go)", part, size, unit, max(limit, row.figure)))
		}
	}
	return found
}

// A row of a part that is gone would let a new part of its name grow.
func TestEveryRowOfTheBudgetIsOfAPart(t *testing.T) {
	parts := map[string]bool{}
	for _, s := range ours(readTree(t)) {
		parts[s.dir()] = true
		for _, d := range s.file.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				parts[s.dir()+"."+f.Name.Name] = true
			}
		}
	}
	for _, table := range []map[string]excess{packageLines, ourImports, parameters} {
		for part, row := range table {
			if !parts[part] || row.why == "" {
				t.Errorf("%s: got a row with the reason %q, want a part of the tree and a reason", part, row.why)
			}
		}
	}
}

func linesOf(s source) int { return strings.Count(s.text, "\n") }

func checkPackageLines(sources []source) []string {
	sizes := map[string]int{}
	for _, s := range ours(sources) {
		sizes[s.dir()] += linesOf(s)
	}
	return overBudget(sizes, maxPackageLines, packageLines, "lines")
}

func checkOurImports(sources []source) []string {
	imported := map[string]map[string]bool{}
	for _, s := range ours(sources) {
		for _, i := range imports(s) {
			if i.ours == "" {
				continue
			}
			if imported[s.dir()] == nil {
				imported[s.dir()] = map[string]bool{}
			}
			imported[s.dir()][i.ours] = true
		}
	}
	sizes := map[string]int{}
	for dir, all := range imported {
		sizes[dir] = len(all)
	}
	return overBudget(sizes, maxOurImports, ourImports, "imports of ours")
}

func checkParameters(sources []source) []string {
	sizes := map[string]int{}
	for _, s := range ours(sources) {
		for _, d := range s.file.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				name := s.dir() + "." + f.Name.Name
				sizes[name] = max(sizes[name], f.Type.Params.NumFields())
			}
		}
	}
	return overBudget(sizes, maxParameters, parameters, "parameters")
}

func checkProductLines(sources []source) []string {
	lines := 0
	for _, s := range ours(sources) {
		if !slices.ContainsFunc(besideProduct, func(top string) bool { return within(s.dir(), top) }) {
			lines += linesOf(s)
		}
	}
	return overBudget(map[string]int{"the product": lines}, maxProductLines, nil, "lines")
}

func budgetRules() []rule {
	lines := func(n int) string { return "package a\n" + strings.Repeat("\n", n-1) }
	imports := func(n int) string {
		text := "package a\n"
		for i := range n {
			text += fmt.Sprintf("import _ %q\n", fmt.Sprintf("%s/internal/p%d", module, i))
		}
		return text
	}
	return []rule{
		{
			name:  "a package is small",
			check: checkPackageLines,
			wrong: []mistake{
				{"internal/a: 2501 lines, the limit is 2500", tree{"internal/a/a.go": lines(1501), "internal/a/b.go": lines(1000)}},
				{"internal/machine: 7151 lines, the limit is 7150", tree{"internal/machine/a.go": lines(7151)}},
				{"internal/machine: 9 lines: it needs no row", tree{"internal/machine/a.go": lines(9)}},
			},
			good: []tree{
				{"internal/a/a.go": lines(1500), "internal/a/b.go": lines(1000), "internal/a/a_test.go": lines(1000), "internal/b/b.go": lines(2500)},
				{"internal/machine/a.go": lines(7150)},
			},
		},
		{
			name:  "a package imports few of ours",
			check: checkOurImports,
			wrong: []mistake{
				{"internal/a: 21 imports of ours, the limit is 20", tree{"internal/a/a.go": imports(21)}},
				{"internal/a: 21 imports", tree{"internal/a/a.go": imports(20), "internal/a/b.go": "package a\nimport _ \"" + module + "\"\n"}},
				{"internal/embedded: 35 imports of ours, the limit is 34", tree{"internal/embedded/a.go": imports(35)}},
			},
			good: []tree{
				{"internal/a/a.go": imports(20) + "import _ \"time\"\n", "internal/a/b.go": imports(20), "internal/a/a_test.go": imports(30)},
				{"internal/embedded/a.go": imports(34)},
			},
		},
		{
			name:  "a function has few parameters",
			check: checkParameters,
			wrong: []mistake{
				{"internal/a.f: 6 parameters, the limit is 5", tree{"internal/a/a.go": "package a\nfunc f(a, b, c int, d, e, f string) {}\n"}},
				{"internal/a.f: 6 parameters", tree{"internal/a/a.go": "package a\nfunc f(int, int, int, int, int, int) {}\n"}},
				{"internal/a.f: 6 parameters", tree{"internal/a/a.go": "package a\nfunc (x t) f(a, b, c, d, e, f int) {}\nfunc (x u) f() {}\n"}},
			},
			good: []tree{{
				"internal/a/a.go": "package a\nfunc f(a, b, c int, d, e string) (x, y int) {}\n", "internal/a/a_test.go": "package a\nfunc f(a, b, c, d, e, f int) {}\n",
			}},
		},
		{
			name:  "the product does not grow",
			check: checkProductLines,
			wrong: []mistake{{"the product: ", tree{"internal/a/a.go": lines(maxProductLines), "b.go": lines(1)}}},
			good: []tree{{
				"internal/a/a.go": lines(maxProductLines), "lab/a/a.go": lines(9), "importer/a.go": lines(9), "kits/a.go": lines(9), "examples/a/a.go": lines(9), "a_test.go": lines(9),
			}},
		},
	}
}
