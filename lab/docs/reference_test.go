package docs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

//go:generate go test . -run TestTheReferenceIsThatOfTheCode -rewrite

var rewrite = flag.Bool("rewrite", false, "write docs/reference anew, but for the command and the workflow file")

// The pages that are looked up in are drawn from the code and its comments, which are where a limit, an event or a metric is
// explained once.
func TestTheReferenceIsThatOfTheCode(t *testing.T) {
	for name, draw := range map[string]func(*testing.T) string{
		"limits.md": drawLimits, "events.md": drawEvents, "metrics.md": drawMetrics, "api.md": drawAPI,
	} {
		file := "docs/reference/" + name
		want := draw(t)
		if *rewrite {
			if err := os.WriteFile("../../"+file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, file); got != want {
			t.Errorf("%s is not what the code says: run go generate ./lab/docs", file)
		}
	}
}

// explained is a declaration with its comment. Of several that share one, the names stand together.
type explained struct {
	names []string
	about string
}

// commentsOf returns the constants of a file that begin with one of the prefixes, in their order. Those without a comment of their
// own belong to the one above.
func commentsOf(file *ast.File, prefixes ...string) []explained {
	var all []explained
	for _, d := range file.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || group.Tok != token.CONST {
			continue
		}
		for i, s := range group.Specs {
			value := s.(*ast.ValueSpec)
			name := value.Names[0].Name
			if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				continue
			}
			about := sentence(value.Doc)
			if value.Comment != nil {
				about = sentence(value.Comment)
			}
			if about == "" && i == 0 {
				about = sentence(group.Doc)
			}
			if about == "" && len(all) > 0 {
				all[len(all)-1].names = append(all[len(all)-1].names, name)
				continue
			}
			all = append(all, explained{[]string{name}, about})
		}
	}
	return all
}

// sentence is a comment as one line.
func sentence(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// cell is a text as it can stand in a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

func parsed(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// drawLimits draws the constants of limits.go, of internal/limits and of internal/domain, with the values that the
// compiler sees.
func drawLimits(t *testing.T) string {
	internal := constantsOf(t, "../../internal/limits/*.go")
	return "# Limits\n\nGenerated from `limits.go`, `internal/limits` and `internal/domain` by `go generate ./lab/docs`. What is over a limit is\n" +
		"refused at the door, with a message that names it. In Go these are constants of package `makegood`:\n\n" +
		limitsOf(t, "limits.go", constantsOf(t, "../../*.go")) +
		"\n## Of workflows, submissions and answers\n\nNo program can name these: the doc comments of the fields have the figures.\n\n" +
		limitsOf(t, "internal/limits/users.go", internal) +
		"\n## Defaults\n\n" + limitsOf(t, "internal/domain/defaults.go", constantsOf(t, "../../internal/domain/*.go")) +
		"\n## Of the engine\n\nNo user sets these, and no program of a user can name them.\n\n" +
		limitsOf(t, "internal/limits/limits.go", internal)
}

// limitsOf draws the constants of a file as a table.
func limitsOf(t *testing.T, file string, values map[string]constant.Value) string {
	page := "| name | value | |\n|---|---|---|\n"
	for _, limit := range commentsOf(parsed(t, file), "") {
		var names, shown []string
		for _, name := range limit.names {
			if ast.IsExported(name) {
				names, shown = append(names, "`"+name+"`"), append(shown, humanly(name, values[name]))
			}
		}
		if len(names) > 0 {
			page += fmt.Sprintf("| %s | %s | %s |\n", strings.Join(names, ", "), strings.Join(shown, ", "), cell(withoutName(limit)))
		}
	}
	return page
}

// withoutName is what is said of a limit, without the name that a doc comment begins with.
func withoutName(e explained) string {
	about, is := strings.CutPrefix(e.about, e.names[0]+" is ")
	if !is {
		return e.about
	}
	return capital(about)
}

// constantsOf asks the compiler for the constants of the package whose files these are.
func constantsOf(t *testing.T, pattern string) map[string]constant.Value {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	checked, err := (&types.Config{Importer: importer.ForCompiler(fset, "source", nil)}).Check("makegood", fset, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]constant.Value{}
	for _, name := range checked.Scope().Names() {
		if c, is := checked.Scope().Lookup(name).(*types.Const); is {
			values[name] = c.Val()
			if strings.HasSuffix(c.Type().String(), "Duration") {
				n, _ := constant.Int64Val(c.Val())
				values[name] = constant.MakeString(durationText(time.Duration(n)))
			}
		}
	}
	return values
}

// durationText writes a duration as a workflow file does, in days where it is some.
func durationText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if cut, is := strings.CutSuffix(text, zero); is {
			text = cut + zero[:1]
		}
	}
	return text
}

// humanly writes a value, bytes in larger units where they are whole.
func humanly(name string, value constant.Value) string {
	if value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	n, exact := constant.Int64Val(value)
	switch {
	case !exact:
		return value.String()
	case strings.HasSuffix(name, "Bytes") && n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case strings.HasSuffix(name, "Bytes") && n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case strings.HasSuffix(name, "Bytes"):
		return fmt.Sprintf("%d bytes", n)
	default:
		return value.String()
	}
}

// drawEvents draws what can happen to a job, and what of it a person reads in its history.
func drawEvents(t *testing.T) string {
	page := "# What happens to a job\n\nGenerated from `internal/job/event.go` and `history.go` by `go generate ./lab/docs`. Those that come as messages are in\n" +
		"[messages](../messages.md); what each does to a job is in [states](../states.md).\n\n## Events\n\nThe set is closed: nothing else changes a job.\n\n| event | |\n|---|---|\n"
	file := parsed(t, "internal/job/event.go")
	events := map[string]bool{}
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name == "isEvent" {
			events[f.Recv.List[0].Type.(*ast.Ident).Name] = true
		}
	}
	for _, d := range file.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || group.Tok != token.TYPE {
			continue
		}
		if name := group.Specs[0].(*ast.TypeSpec).Name.Name; events[name] {
			delete(events, name)
			page += fmt.Sprintf("| `%s` | %s |\n", name, cell(capital(strings.TrimPrefix(sentence(group.Doc), name+": "))))
		}
	}
	if len(events) > 0 {
		t.Errorf("these events have no comment of their own: %v", slices.Sorted(maps.Keys(events)))
	}
	page += fmt.Sprintf("\n## Entries of a job's history\n\nOf a job that goes well there are none. The first %d and the last %d are kept.\n\n| kind | |\n|---|---|\n", limits.MaxHistoryFirst, limits.MaxHistoryLast)
	values := constantsOf(t, "../../*.go")
	for _, kind := range commentsOf(parsed(t, "history.go"), "Entry") {
		page += fmt.Sprintf("| `%s` | %s |\n", constant.StringVal(values[kind.names[0]]), cell(capital(strings.TrimPrefix(kind.about, kind.names[0]+": "))))
	}
	return page
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// drawMetrics draws the metrics of a stack.
func drawMetrics(t *testing.T) string {
	page := fmt.Sprintf("# Metrics\n\n## Of a stack\n\nGenerated from `internal/deployed/metrics.go` by `go generate ./lab/docs`. They are in CloudWatch's namespace `%s`,\n"+
		"under the dimension `%s`, those of agents under `%s` as well. [Operating](../operate.md#metrics) says which function writes which, and\n[cost](../cost.md) what they cost.\n\n| metric | counts, or how long |\n|---|---|\n",
		deployed.MetricsNamespace, deployed.DimensionStack, deployed.DimensionAgent)
	drawn := []string{}
	for _, metric := range commentsOf(parsed(t, "internal/deployed/metrics.go"), "Metric") {
		for _, constant := range metric.names {
			name := strings.TrimPrefix(constant, "Metric")
			if slices.Contains(deployed.Metrics(), name) {
				drawn = append(drawn, name)
				page += fmt.Sprintf("| `%s` | %s |\n", name, cell(metric.about))
			}
		}
	}
	page += fmt.Sprintf("\n## By name\n\nWith `MetricsByName=yes` these are under `%s` as well: `%s`. These are under `%s`: `%s`.\n",
		deployed.DimensionAgent, strings.Join(deployed.MetricsByAgent(), "`, `"), deployed.DimensionWorkflow, strings.Join(deployed.MetricsByWorkflow(), "`, `"))
	page += "\n## Of an engine\n\nGenerated from `internal/telemetry/samples.go`. These are OpenTelemetry's, of `makegood dev` and of engines that are given a provider; Prometheus has them at `/metrics`\n" +
		"as [telemetry.md](../telemetry.md#metrics) says. Durations (`s`) are histograms, all others are counters.\n\n| metric | unit | says | by |\n|---|---|---|---|\n"
	for _, d := range telemetry.Metrics() {
		by := ""
		if len(d.By) > 0 {
			by = "`" + strings.Join(d.By, "`, `") + "`"
		}
		page += fmt.Sprintf("| `%s` | %s | %s | %s |\n", d.Metric, d.Unit, cell(d.Says), by)
	}
	if len(drawn) != len(deployed.Metrics()) {
		t.Errorf("got %d metrics with a constant of their name, want %d: %v", len(drawn), len(deployed.Metrics()), drawn)
	}
	return page
}

// drawAPI draws the routes of the HTTP API.
func drawAPI(t *testing.T) string {
	type parameter struct {
		Name, In, Description string
		Required              bool
	}
	type operation struct {
		Summary    string
		Parameters []parameter
		Responses  map[string]any
	}
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(httpapi.Document(), &document); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	page.WriteString("# The HTTP API\n\nGenerated from the table of routes by `go generate ./lab/docs`. The OpenAPI document has the types, too: a process serves\n" +
		"it at `/api/openapi.json`, a release has it beside its archives, and in a clone `make openapi` writes `dist/openapi.json`.\n\n`makegood dev` serves it below\n" +
		"`http://127.0.0.1:4777`; a program of yours where it mounts the engine's handler; a stack behind its [doors](../doors.md). What is refused is answered with\n" +
		"`{\"error\": \"...\"}`, and with `reason` where the job as it stands is why.\n")
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			o := document.Paths[path][method]
			fmt.Fprintf(&page, "\n## %s %s\n\n%s\n\nAnswers: %s.\n", strings.ToUpper(method), path, o.Summary, strings.Join(slices.Sorted(maps.Keys(o.Responses)), ", "))
			head := "\n| parameter | in | |\n|---|---|---|\n"
			for _, p := range o.Parameters {
				fmt.Fprintf(&page, "%s| `%s` | %s | %s |\n", head, p.Name, p.In, cell(p.Description))
				head = ""
			}
		}
	}
	return page.String()
}
