package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// noNouns are names that say nothing about what a package holds.
var noNouns = []string{"base", "common", "core", "helper", "helpers", "lib", "misc", "models", "shared", "types", "util", "utils"}

func commentFaults(tr *tree) []string {
	var faults []string
	for _, dir := range tr.dirs() {
		commented := 0
		for _, f := range tr.product() {
			if f.dir == dir && f.ast.Doc != nil && startsAsPackageComment(f) {
				commented++
			}
		}
		switch commented {
		case 0:
			faults = append(faults, fmt.Sprintf("%s has no package comment: say what it owns, promises and refuses", dir))
		case 1:
		default:
			faults = append(faults, fmt.Sprintf("%s has %d package comments; godoc shows them one after the other", dir, commented))
		}
	}
	return faults
}

func startsAsPackageComment(f file) bool {
	text := f.ast.Doc.Text()
	if f.ast.Name.Name == "main" {
		return strings.HasPrefix(text, "Command ") || strings.HasPrefix(text, "Reconciler ")
	}
	return strings.HasPrefix(text, "Package "+f.ast.Name.Name+" ")
}

func nameFaults(tr *tree) []string {
	var faults []string
	for _, dir := range tr.dirs() {
		if slices.Contains(noNouns, path.Base(dir)) {
			faults = append(faults, fmt.Sprintf("%s: is no noun that says what the package holds", dir))
		}
	}
	for _, f := range tr.product() {
		if name := f.ast.Name.Name; name != "main" && name != path.Base(f.dir) {
			faults = append(faults, fmt.Sprintf("%s: package %s is in folder %s", f.path, name, f.dir))
		}
	}
	return faults
}

// initFaults finds what happens by an import alone. Kinds, rules and matchers stand in
// literal lists, where a reader finds them.
func initFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		for _, spec := range f.ast.Imports {
			if spec.Name != nil && spec.Name.Name == "_" && importPath(spec) != "embed" {
				faults = append(faults, fmt.Sprintf("%s: blank import of %s", tr.at(spec), importPath(spec)))
			}
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				faults = append(faults, fmt.Sprintf("%s: init()", tr.at(fn)))
			}
		}
	}
	return faults
}
