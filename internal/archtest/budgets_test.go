package archtest

import (
	"fmt"
	"go/ast"
)

// The budgets of product code. What is over one is usually two things.
const (
	maxFunctionLines = 70
	maxFileLines     = 400
	// maxParameters does not count a context, which is not a choice of the caller's.
	maxParameters = 4
)

func budgetFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		if lines := tr.set.File(f.ast.Pos()).LineCount(); lines > maxFileLines {
			faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d: is it one thing?", f.path, lines, maxFileLines))
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := tr.line(fn.End()) - tr.line(fn.Pos()) + 1; lines > maxFunctionLines {
				faults = append(faults, fmt.Sprintf("%s: %s has %d lines, at most %d", tr.at(fn), fn.Name.Name, lines, maxFunctionLines))
			}
			if n := parameters(fn); n > maxParameters {
				faults = append(faults, fmt.Sprintf("%s: %s has %d parameters, at most %d beside the context: give it a struct", tr.at(fn), fn.Name.Name, n, maxParameters))
			}
		}
	}
	return faults
}

func parameters(fn *ast.FuncDecl) int {
	n := 0
	for _, field := range fn.Type.Params.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}
