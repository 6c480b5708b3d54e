package workflowfile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// objects are the objects of a workflow file and the Go types that they are read into.
func objects() map[reflect.Type]kind {
	return map[reflect.Type]kind{
		reflect.TypeFor[makegood.Workflow]():   workflowKind(&file{}),
		reflect.TypeFor[makegood.Step]():       stepKind(0, &makegood.Step{}),
		reflect.TypeFor[makegood.Undo]():       undoKind(&makegood.Undo{}, &makegood.Step{}),
		reflect.TypeFor[makegood.Retry]():      retryKind(&makegood.Retry{}, nil),
		reflect.TypeFor[makegood.Repeat]():     repeatKind(&makegood.Repeat{}),
		reflect.TypeFor[makegood.ErrorRoute](): routeKind(&makegood.ErrorRoute{}, &makegood.Step{}, 0),
		reflect.TypeFor[makegood.WaitRules]():  waitingKind(&makegood.WaitRules{}, ""),
		reflect.TypeFor[makegood.Escalate]():   escalateKind(&makegood.Escalate{}),
		reflect.TypeFor[makegood.OnTimeout]():  onTimeoutKind(&makegood.OnTimeout{}),
		reflect.TypeFor[makegood.Schedule]():   scheduleKind(0, &makegood.Schedule{}),
	}
}

// inFile is the name of a Go field in a workflow file, which is its JSON name but for a few; empty: a file does not have it.
func inFile(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch name {
	case "none", "any": // An undo says none in the place of an object, and needs say any.
		return ""
	case "workflow": // A schedule in a file is of the workflow there.
		return ""
	case "shared":
		return "exclusive"
	}
	return name
}

func TestEveryFieldOfAWorkflowHasARowInTheTable(t *testing.T) {
	for of, kind := range objects() {
		rows := kind.schema().Properties
		for i := range of.NumField() {
			name := inFile(of.Field(i))
			if of.Field(i).Name == "Part" {
				continue // It is of a workflow that is made of a map.
			}
			if name != "" && rows[name] == nil {
				t.Errorf("%s.%s: got no row %q, want one", of, of.Field(i).Name, name)
			}
			delete(rows, name)
		}
		if of == reflect.TypeFor[makegood.Workflow]() {
			delete(rows, "defaults")  // They are written into the steps,
			delete(rows, "schedules") // and these are no part of a definition.
		}
		for name := range rows {
			t.Errorf("%s: got a row %q, want a field", of, name)
		}
	}
}

// comments are the doc comments of the root package, by TYPE and by TYPE.FIELD.
func comments(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"workflow.go", "routes.go", "schedule.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, is := d.(*ast.GenDecl)
			if !is || group.Tok != token.TYPE {
				continue
			}
			of := group.Specs[0].(*ast.TypeSpec)
			all[of.Name.Name] = oneLine(group.Doc.Text())
			if s, is := of.Type.(*ast.StructType); is {
				for _, f := range s.Fields.List {
					all[of.Name.Name+"."+f.Names[0].Name] = oneLine(f.Doc.Text())
				}
			}
		}
	}
	return all
}

// figures are what a doc comment must say of a row, each in one of several ways: its default, its largest number, the
// names that it allows.
func figures(s *Schema) (all [][]string) {
	number := func(n int) string {
		if n < 1000 {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	switch d := s.Default.(type) {
	case makegood.Duration:
		all = append(all, []string{"Default: " + short(d), fmt.Sprintf("%d minutes", int(d.Std().Minutes()))})
	case int:
		all = append(all, []string{"Default: " + number(d)})
	}
	if s.Maximum > 0 {
		all = append(all, []string{fmt.Sprintf("%d to %s", s.Minimum, number(s.Maximum))})
	}
	for _, one := range append(s.OneOf, s) {
		if one.MaxItems > 0 {
			all = append(all, []string{"at most " + number(one.MaxItems)})
		}
	}
	if s.Type == "string" && strings.HasSuffix(s.Pattern, "{0,62}$") {
		all = append(all, []string{strings.Trim(s.Pattern, "^$")})
	}
	return all
}

// A doc comment and the table say the same of a field to two readers: the figures in them are compared. A comment of the
// type counts, too.
func TestDocCommentsHaveTheFiguresOfTheTable(t *testing.T) {
	says := comments(t)
	for of, kind := range objects() {
		rows := kind.schema().Properties
		for i := range of.NumField() {
			name := of.Name() + "." + of.Field(i).Name
			row := rows[inFile(of.Field(i))]
			// These are as of a step, as many as the steps, and as those of WaitRules.
			if row == nil || slices.Contains([]string{"Undo.Agent", "Undo.Action", "Step.Needs", "Escalate.Ask"}, name) {
				continue
			}
			if of.Name() != "Undo" && of.Name() != "Escalate" && says[name] == "" {
				t.Errorf("%s: got no doc comment, want one", name)
			}
			for _, ways := range figures(row) {
				if !slices.ContainsFunc(ways, func(way string) bool { return strings.Contains(says[name]+" "+says[of.Name()], way) }) {
					t.Errorf("%s: got the comment %q, want one of %q in it", name, says[name], ways)
				}
			}
		}
	}
}
