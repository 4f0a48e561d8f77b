package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// papers are the pages whose names of files, tests and declarations must be true.
var papers = []string{"ARCHITECTURE.md", "CONTRIBUTING.md"}

var (
	quoted      = regexp.MustCompile("`([^`\n]+)`")
	testName    = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z]\w*$`)
	pathName    = regexp.MustCompile(`^[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*/?$`)
	declaration = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)$`)
)

func paperFaults(tr *tree) []string {
	declared := tr.declared()
	var faults []string
	for _, paper := range papers {
		text, err := fs.ReadFile(tr.fsys, paper)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s is missing", paper))
			continue
		}
		for number, line := range strings.Split(string(text), "\n") {
			for _, match := range quoted.FindAllStringSubmatch(line, -1) {
				if !tr.exists(match[1], declared) {
					faults = append(faults, fmt.Sprintf("%s:%d: there is no %s", paper, number+1, match[1]))
				}
			}
		}
	}
	return faults
}

// exists judges a quoted word only if it is clearly a name of ours: a test, a path below
// a folder that we have, or a capital name in a package that we have.
func (tr *tree) exists(word string, declared map[string]bool) bool {
	if testName.MatchString(word) {
		return declared[word]
	}
	if match := declaration.FindStringSubmatch(word); match != nil {
		return !declared[match[1]] || declared[word]
	}
	first, _, deep := strings.Cut(word, "/")
	if deep && pathName.MatchString(word) && tr.isDir(first) {
		found, err := fs.Glob(tr.fsys, path.Clean(word))
		return err == nil && len(found) > 0
	}
	return true
}

func (tr *tree) isDir(name string) bool {
	info, err := fs.Stat(tr.fsys, name)
	return err == nil && info.IsDir()
}

// declared holds the names of packages ("ledger"), of what they declare ("ledger.Ledger",
// "ledger.Ledger.Record") and of tests ("TestX").
func (tr *tree) declared() map[string]bool {
	names := map[string]bool{}
	for _, f := range tr.files {
		pkg := strings.TrimSuffix(f.ast.Name.Name, "_test")
		names[pkg] = true
		for _, decl := range f.ast.Decls {
			for _, name := range declaredBy(decl) {
				names[pkg+"."+name] = true
				if testName.MatchString(name) {
					names[name] = true
				}
			}
		}
	}
	return names
}

func declaredBy(decl ast.Decl) []string {
	var names []string
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		names = append(names, receiver(decl)+decl.Name.Name)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
				names = append(names, members(spec)...)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// receiver is "Type." for a method and "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, ok := t.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name + "."
}

// members are the fields of a struct and the methods of an interface.
func members(spec *ast.TypeSpec) []string {
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	var names []string
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, spec.Name.Name+"."+name.Name)
		}
	}
	return names
}

var migrationName = regexp.MustCompile(`^(\d{6})_[a-z0-9_]+\.sql$`)

// migrationFaults wants the numbers 1, 2, 3…: with a gap or a pair, two branches that
// were merged have each been applied somewhere in another order.
func migrationFaults(tr *tree) []string {
	names, err := fs.Glob(tr.fsys, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return []string{"migrations: no files were found"}
	}
	var faults []string
	for i, name := range names {
		want := fmt.Sprintf("%06d", i+1)
		match := migrationName.FindStringSubmatch(path.Base(name))
		switch {
		case match == nil:
			faults = append(faults, fmt.Sprintf("%s: is not named like 000001_verb_noun.sql", name))
		case match[1] != want:
			faults = append(faults, fmt.Sprintf("%s: want number %s", name, want))
		}
	}
	return faults
}
