package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// vocabulary lists the exported types of recon. A type is added when a third package
// needs it, not before.
var vocabulary = []string{
	"Ability",
	"Absence",
	"AbsencePolicy",
	"Account",
	"Act",
	"ActionClass",
	"Alarm",
	"AttemptClass",
	"AttemptReport",
	"Backoff",
	"Basis",
	"Case",
	"Certainty",
	"Check",
	"Consistency",
	"Coverage",
	"Crowd",
	"DayFindings",
	"DayMoney",
	"DayReport",
	"Decision",
	"Delivery",
	"Difference",
	"Digest",
	"DigestKind",
	"Duration",
	"Effect",
	"EffectIdentity",
	"EffectRef",
	"EffectStatus",
	"Entry",
	"EntryKind",
	"Event",
	"Fault",
	"Finding",
	"FindingKind",
	"FindingState",
	"Fold",
	"Group",
	"Incident",
	"Look",
	"Mark",
	"Match",
	"Member",
	"Method",
	"Money",
	"Notice",
	"OnAbsent",
	"OnNeverSent",
	"Operation",
	"OperationID",
	"Outcome",
	"PersonAct",
	"Policy",
	"Proposal",
	"Receipt",
	"Repeat",
	"Role",
	"Secret",
	"Sheet",
	"SourceName",
	"State",
	"Story",
	"Telling",
	"Testimony",
	"Told",
	"ToldStep",
	"Verb",
	"Window",
	"Word",
}

// pure are the packages that judge: what they say depends on their arguments alone, so
// that a decision can be repeated and tested.
var pure = []string{"matchers", "recon", "rules"}

// impure are the imports (with all below them) that a pure package cannot have.
var impure = []string{"context", "database", "math/rand", "net", "os", "runtime", "syscall"}

func vocabularyFaults(tr *tree) []string {
	var faults, found []string
	for _, f := range tr.product() {
		if f.dir != "recon" {
			continue
		}
		for _, imported := range f.imports() {
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				faults = append(faults, fmt.Sprintf("%s: imports %s, and recon imports the standard library only", f.path, imported))
			}
		}
		for _, name := range exportedTypes(f.ast) {
			found = append(found, name.Name)
			if !slices.Contains(vocabulary, name.Name) {
				faults = append(faults, fmt.Sprintf("%s: type %s is new: if a third package needs it, list it in internal/archtest", tr.at(name), name.Name))
			}
		}
	}
	for _, name := range vocabulary {
		if !slices.Contains(found, name) {
			faults = append(faults, fmt.Sprintf("type %s is gone from recon: take it from the list in internal/archtest", name))
		}
	}
	return faults
}

func exportedTypes(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, decl := range f.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

func purityFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		if !slices.Contains(pure, f.dir) {
			continue
		}
		for _, imported := range f.imports() {
			for _, bad := range impure {
				if imported == bad || strings.HasPrefix(imported, bad+"/") {
					faults = append(faults, fmt.Sprintf("%s: imports %s, and %s is pure", f.path, imported, f.dir))
				}
			}
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if isCall(node, "time", "Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer") {
				faults = append(faults, fmt.Sprintf("%s: asks the clock; take now as an argument", tr.at(node)))
			}
			return true
		})
	}
	return faults
}
