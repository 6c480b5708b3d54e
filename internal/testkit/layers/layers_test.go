package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// plain are the fields that every job has, or that say nothing of what happens.
var plain = []string{
	"Workflow.Name", "Workflow.Steps", "Step.Name", "Step.Agent", "Step.Action", "Step.With", "Schedule.Name", "Schedule.Workflow",
}

// A feature that is added to what people write, ask or say has a row: otherwise nothing says whether any layer looks at it.
func TestEveryFieldEventAndVerbHasARow(t *testing.T) {
	var all []string
	for _, part := range []any{
		makegood.Workflow{},
		makegood.Step{},
		makegood.Undo{},
		makegood.Retry{},
		makegood.Repeat{},
		makegood.ErrorRoute{},
		makegood.OnFailure{},
		makegood.WaitRules{},
		makegood.Escalate{},
		makegood.OnTimeout{},
		makegood.Schedule{},
	} {
		of := reflect.TypeOf(part)
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				all = append(all, of.Name()+"."+of.Field(i).Name)
			}
		}
	}
	for _, v := range domain.Verbs() {
		all = append(all, string(v))
	}
	for _, k := range domain.HoldKinds() {
		all = append(all, string(k))
	}
	all = append(all, events(t)...)
	var stands []string
	for _, r := range table() {
		stands = append(stands, strings.Fields(r.code)...)
	}
	for _, code := range all {
		if n := count(append(stands, plain...), code); n != 1 {
			t.Errorf("%s stands in %d rows of the table of features, want 1", code, n)
		}
	}
	for _, code := range stands {
		if !slices.Contains(all, code) {
			t.Errorf("a row stands for %s, which is not there", code)
		}
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// events are the names of what may happen to a job. What is asked for has its verbs.
func events(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../job/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "isEvent" {
			name := f.Recv.List[0].Type.(*ast.Ident).Name
			if name != "Requested" {
				names = append(names, name)
			}
		}
	}
	if len(names) < 15 {
		t.Fatalf("got the events %v, want all", names)
	}
	return names
}

// The page has the rows of the table, and says what no layer plays.
func TestThePageHasTheTable(t *testing.T) {
	page := proof.Page(t)
	if want := render(read(page)); !strings.Contains(page, want) {
		t.Errorf("docs/proof.md does not have the table as its cells make it:\n%s", want)
	}
}
