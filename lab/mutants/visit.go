package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// visit makes the mutants of a node. What it does not go below has none: what is only logged, and the panics that say
// that we have made a mistake.
func (l *lister) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ExprStmt:
		if quiet(n.X) {
			return false
		}
		l.whole(n, "")
	case *ast.AssignStmt:
		l.assignment(n)
	case *ast.IncDecStmt:
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		l.replace(n.TokPos, n.End(), other, n)
		l.whole(n, "")
	case *ast.BinaryExpr:
		l.binary(n)
	case *ast.UnaryExpr:
		l.unary(n)
	case *ast.ReturnStmt:
		// What stands beside an error means nothing.
		last, named := lastOf(n.Results).(*ast.Ident)
		return !named || last.Name != "err"
	case *ast.IfStmt:
		if onlyLogs(n) {
			if n.Init != nil {
				ast.Inspect(n.Init, l.visit)
			}
			return false
		}
		l.condition(n.Cond)
	case *ast.SwitchStmt:
		l.clauses(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		l.clauses(n.Body, false)
	case *ast.BranchStmt:
		l.branch(n)
	case *ast.CallExpr:
		l.call(n)
	case *ast.CompositeLit:
		l.fields(n)
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			l.whole(n, other)
		}
	}
	return true
}

func lastOf(results []ast.Expr) ast.Expr {
	if len(results) < 2 {
		return nil
	}
	return results[len(results)-1]
}

// quiet reports whether a statement only logs or panics.
func quiet(x ast.Expr) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		if f, ok := call.Fun.(*ast.Ident); ok {
			return f.Name == "panic"
		}
	}
	return logs(x)
}

// logs reports whether a statement only logs.
func logs(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	receiver, ok := f.X.(*ast.SelectorExpr)
	// An attempt notes what becomes of it: in the log alone.
	return ok && (strings.EqualFold(receiver.Sel.Name, "logger") || receiver.Sel.Name == "log") || f.Sel.Name == "note"
}

// onlyLogs reports whether all that a condition decides is what is logged.
func onlyLogs(n *ast.IfStmt) bool {
	if n.Else != nil {
		return false
	}
	for _, s := range n.Body.List {
		if x, ok := s.(*ast.ExprStmt); !ok || !logs(x.X) {
			return false
		}
	}
	return len(n.Body.List) > 0
}

// assignment leaves out what is assigned, one place at a time, and changes what is added.
func (l *lister) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	for _, other := range swaps[n.Tok] {
		l.replace(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), other, n)
	}
	if n.Tok != token.ASSIGN {
		l.whole(n, "_ = "+l.source(n.Rhs[0]))
		return
	}
	for _, to := range n.Lhs {
		if l.source(to) != "_" {
			l.replace(to.Pos(), to.End(), "_", n)
		}
	}
}

// binary exchanges an operator, and leaves out one side of "and" and "or".
func (l *lister) binary(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		l.replace(n.X.End(), n.End(), "", n)
		l.replace(n.Pos(), n.Y.Pos(), "", n)
		return
	}
	if n.Op == token.ADD && (isText(n.X) || isText(n.Y)) {
		return
	}
	for _, other := range swaps[n.Op] {
		l.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other, n)
	}
}

func isText(x ast.Expr) bool {
	literal, ok := x.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}

func (l *lister) unary(n *ast.UnaryExpr) {
	switch n.Op {
	case token.NOT:
		l.replace(n.Pos(), n.X.Pos(), "", n)
	case token.SUB:
		l.replace(n.Pos(), n.X.Pos(), "+", n)
	}
}

// condition turns a condition that has no operator to be exchanged.
func (l *lister) condition(x ast.Expr) {
	switch x := x.(type) {
	case *ast.BinaryExpr:
	case *ast.UnaryExpr:
		if x.Op != token.NOT {
			l.whole(x, "!("+l.source(x)+")")
		}
	default:
		l.whole(x, "!("+l.source(x)+")")
	}
}

// clauses makes the cases of a switch never hold: each of those over conditions, and of the others each value that has
// others beside it.
func (l *lister) clauses(body *ast.BlockStmt, conditions bool) {
	for _, s := range body.List {
		c, ok := s.(*ast.CaseClause)
		if !ok {
			continue
		}
		for i, x := range c.List {
			switch {
			case conditions:
				l.whole(x, "false && ("+l.source(x)+")")
			case i > 0:
				l.add(c.List[i-1].End(), x.End(), "", "case "+l.source(x), gone)
			case len(c.List) > 1:
				l.add(x.Pos(), c.List[1].Pos(), "", "case "+l.source(x), gone)
			}
		}
	}
}

func (l *lister) branch(n *ast.BranchStmt) {
	if n.Label != nil {
		return
	}
	switch n.Tok {
	case token.BREAK:
		l.whole(n, "continue")
	case token.CONTINUE:
		l.whole(n, "break")
	}
}

// call exchanges the smaller and the larger.
func (l *lister) call(n *ast.CallExpr) {
	f, ok := n.Fun.(*ast.Ident)
	if !ok {
		return
	}
	if other := map[string]string{"min": "max", "max": "min"}[f.Name]; other != "" {
		l.replace(f.Pos(), f.End(), other, n)
	}
}

// fields leaves out one field of a value at a time.
func (l *lister) fields(n *ast.CompositeLit) {
	for i, x := range n.Elts {
		field, ok := x.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		end := n.Rbrace
		if i+1 < len(n.Elts) {
			end = n.Elts[i+1].Pos()
		}
		l.add(x.Pos(), end, "", l.source(field), gone)
	}
}
