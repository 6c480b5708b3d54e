package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// core is the package whose files are in layers.
const core = "internal/machine"

// layers are how the names of its files begin, the lowest layer first: facts read, moves write, and events call moves.
var layers = []string{"facts_", "moves_", "event_"}

// aboveLayers are the files that take any event, and stand above all layers. A new row is a decision.
var aboveLayers = []string{"machine.go", "offers.go"}

// layerOf returns the place of a file among the layers; below zero: its name says none.
func layerOf(s source) int {
	name := path.Base(s.path)
	if slices.Contains(aboveLayers, name) {
		return len(layers)
	}
	return slices.IndexFunc(layers, func(begins string) bool { return strings.HasPrefix(name, begins) })
}

// coreUse is a place in a file of the core that names a function, method, type, constant or variable of another file.
type coreUse struct {
	from, to source
	pos      token.Pos
	name     string
}

// typedCore returns the core with its types, those of internal/job among them; nil for a tree without it.
func typedCore(sources []source) *typedPackage {
	for _, p := range typed(ours(sources)) {
		if p.sources[0].dir() == core {
			return &p
		}
	}
	return nil
}

// usesInCore returns the uses between the core's files, in the order of the text.
func usesInCore(sources []source) (uses []coreUse) {
	p := typedCore(sources)
	if p == nil {
		return nil
	}
	files := map[string]source{}
	for _, s := range p.sources {
		files[s.path] = s
	}
	for _, s := range p.sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			name, is := n.(*ast.Ident)
			if !is {
				return true
			}
			of := p.info.Uses[name]
			if of == nil || !ofPackage(of) {
				return true
			}
			if to, known := files[s.fset.Position(of.Pos()).Filename]; known && to.path != s.path {
				uses = append(uses, coreUse{from: s, to: to, pos: name.Pos(), name: name.Name})
			}
			return true
		})
	}
	return uses
}

// ofPackage reports whether an object is a method, or declared at the top of a package: neither a field nor local.
func ofPackage(of types.Object) bool {
	if f, is := of.(*types.Func); is && f.Signature().Recv() != nil {
		return true
	}
	return of.Pkg() != nil && of.Parent() == of.Pkg().Scope()
}

func checkLayers(sources []source) []string {
	var found []string
	for _, s := range ours(sources) {
		if s.dir() == core && layerOf(s) < 0 {
			found = append(found, fmt.Sprintf("%s:1: its name begins with none of %q, so it is in no layer", s.path, layers))
		}
	}
	for _, u := range usesInCore(sources) {
		if from := layerOf(u.from); from >= 0 && layerOf(u.to) > from {
			found = append(found, u.from.at(u.pos, "%s is in %s, which is in a layer above", u.name, path.Base(u.to.path)))
		}
	}
	return found
}

// checkCoreCircles finds files of the core that use each other, straight or by way of others. It names each circle once.
func checkCoreCircles(sources []source) []string {
	reaches := map[string]map[string]bool{}
	var files []string
	for _, u := range usesInCore(sources) {
		if reaches[u.from.path] == nil {
			reaches[u.from.path] = map[string]bool{}
			files = append(files, u.from.path)
		}
		reaches[u.from.path][u.to.path] = true
	}
	slices.Sort(files)
	for _, over := range files {
		for _, from := range files {
			for _, to := range files {
				if reaches[from][over] && reaches[over][to] {
					reaches[from][to] = true
				}
			}
		}
	}
	var found []string
	told := map[string]bool{}
	for _, one := range files {
		if !reaches[one][one] || told[one] {
			continue
		}
		circle := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !reaches[one][f] || !reaches[f][one] })
		for i, f := range circle {
			told[f], circle[i] = true, path.Base(f)
		}
		found = append(found, fmt.Sprintf("%s:1: these files use each other in a circle: %s", one, strings.Join(circle, ", ")))
	}
	return found
}

// checkFactsOnlyRead finds assignments by way of a pointer in the lowest layer: the job, its activities and the turn are
// known by pointers there. It does not see a write into the elements of a slice.
func checkFactsOnlyRead(sources []source) []string {
	p := typedCore(sources)
	if p == nil {
		return nil
	}
	var found []string
	for _, s := range p.sources {
		if layerOf(s) != 0 {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var written []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				written = n.Lhs
			case *ast.IncDecStmt:
				written = []ast.Expr{n.X}
			}
			for _, x := range written {
				if p.byPointer(x) {
					found = append(found, s.at(x.Pos(), "a file of facts only reads, and this writes by way of a pointer"))
				}
			}
			return true
		})
	}
	return found
}

// byPointer reports whether an expression leads through a pointer.
func (p typedPackage) byPointer(x ast.Expr) bool {
	var of ast.Expr
	switch x := x.(type) {
	case *ast.StarExpr:
		return true
	case *ast.ParenExpr:
		return p.byPointer(x.X)
	case *ast.SelectorExpr:
		of = x.X
	case *ast.IndexExpr:
		of = x.X
	default:
		return false
	}
	if t := p.info.TypeOf(of); t != nil {
		if _, is := t.Underlying().(*types.Pointer); is {
			return true
		}
	}
	return p.byPointer(of)
}

// checkEventFiles finds files of the highest layer that take no event: the files above use nothing of theirs.
func checkEventFiles(sources []source) []string {
	takes := map[string]bool{}
	for _, u := range usesInCore(sources) {
		takes[u.to.path] = takes[u.to.path] || layerOf(u.from) == len(layers)
	}
	var found []string
	for _, s := range ours(sources) {
		if s.dir() != core || layerOf(s) != len(layers)-1 || takes[s.path] {
			continue
		}
		found = append(found, fmt.Sprintf("%s:1: it takes no event: %s use nothing of it", s.path, strings.Join(aboveLayers, " and ")))
	}
	return found
}

func layerRules() []rule {
	// A tree of files of the core, of pairs of a name and a text.
	files := func(pairs ...string) tree {
		all := tree{}
		for pair := range slices.Chunk(pairs, 2) {
			all[core+"/"+pair[0]] = "package machine\n" + pair[1] + "\n"
		}
		return all
	}
	turn := "type turn struct{ late bool }"
	withJob := tree{
		"internal/job/j.go":           "package job\ntype Job struct{ Name string }\n",
		"internal/machine/facts_a.go": "package machine\nimport \"" + module + "/internal/job\"\ntype turn struct{ job *job.Job }\nfunc (t *turn) f() { j := t.job; j.Name = \"\" }\n",
	}
	return []rule{
		{
			name:  "the core is in layers: events use moves, moves use facts, and none what is above",
			check: checkLayers,
			wrong: []mistake{
				{"facts_a.go:2: move is in moves_b.go, which is in a layer above", files("facts_a.go", "func a() { move() }", "moves_b.go", "func move() {}")},
				{
					"moves_a.go:2: happened is in event_b.go",
					files("facts_a.go", turn, "moves_a.go", "func (t *turn) a() { t.happened() }", "event_b.go", "func (t *turn) happened() {}"),
				},
				{"event_a.go:2: Apply is in machine.go", files("event_a.go", "func a() { Apply() }", "machine.go", "func Apply() {}")},
				{"facts_a.go:2: kind is in moves_b.go", files("facts_a.go", "func a(kind) {}", "moves_b.go", "type kind int")},
				{"facts_a.go:2: most is in event_b.go", files("facts_a.go", "var a = most", "event_b.go", "const most = 3")},
				{"internal/machine/other.go:1: its name begins with none of", files("other.go", "func a() {}")},
			},
			good: []tree{
				files("facts_a.go", turn, "moves_a.go", "func (t *turn) a() { t.late = true }", "event_b.go", "func (t *turn) b() { t.a() }", "offers.go", "func Offers(t *turn) { t.b() }"),
				files("facts_a.go", "func a() { b() }", "facts_b.go", "func b() {}", "other_test.go", "func c() { a() }"),
				{"internal/wire/w.go": "package wire\n"},
			},
		},
		{
			name:  "no files of the core use each other in a circle",
			check: checkCoreCircles,
			wrong: []mistake{
				{
					"facts_a.go:1: these files use each other in a circle: facts_a.go, facts_b.go",
					files("facts_a.go", "func a() { b() }\nfunc c() {}", "facts_b.go", "func b() { c() }"),
				},
				{
					"in a circle: facts_a.go, moves_b.go, moves_c.go",
					files("facts_a.go", "func a() { b() }", "moves_b.go", "func b() { c() }", "moves_c.go", "func c() { a() }\nfunc d() { a() }"),
				},
			},
			good: []tree{files("moves_a.go", "func a() { b(); b() }", "moves_b.go", "func b() { if false { b() }; c() }", "facts_c.go", "func c() {}")},
		},
		{
			name:  "the core's files of facts only read",
			check: checkFactsOnlyRead,
			wrong: []mistake{
				{"facts_a.go:3: a file of facts only reads", files("facts_a.go", turn+"\nfunc (t *turn) a() { t.late = true }")},
				{"a file of facts only reads", files("facts_a.go", "func a(n *int) { *n++ }")},
				{"a file of facts only reads", files("facts_a.go", "type t struct{ all [2]struct{ n int } }\nfunc a(t *t) { (t.all[1]).n += 2 }")},
				{"a file of facts only reads", withJob},
			},
			good: []tree{
				files("facts_a.go", turn+"\nfunc a(t turn) turn { t.late = true; return t }", "moves_b.go", "func b(t *turn) { t.late = true }"),
				files("facts_a.go", "func a() (all []int) { n := 1; n++; all = append(all, n); all[0] = 2; return all }"),
			},
		},
		{
			name:  "every file of an event takes one",
			check: checkEventFiles,
			wrong: []mistake{
				{"event_a.go:1: it takes no event", files("event_a.go", "func a() {}", "machine.go", "func Apply() {}")},
				{"event_a.go:1: it takes no event", files("event_a.go", "func a() {}", "event_b.go", "func b() { a() }", "machine.go", "func Apply() { b() }")},
			},
			good: []tree{files("event_a.go", "func a() {}", "moves_b.go", "func b() {}", "machine.go", "func Apply() { a() }")},
		},
	}
}
