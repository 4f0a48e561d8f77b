package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryFaultCompiles checks the types of a fault's package, so that none is found to be
// no program only when it is tried.
func TestEveryFaultCompiles(t *testing.T) {
	t.Parallel()
	sources := programs{set: token.NewFileSet(), parsed: map[string]map[string]*ast.File{}}
	faults := slices.DeleteFunc(mutants(), func(m mutant) bool { return !strings.HasSuffix(m.file, ".go") })
	for _, m := range faults {
		sources.read(t, filepath.Dir(m.file))
	}
	sources.imports = imports(t, sources)
	for _, m := range faults {
		text, err := m.mutated(root)
		if err != nil {
			continue // TestEveryFaultStillApplies tells it
		}
		if err := sources.check(m.file, text); err != nil {
			t.Errorf("the fault %q does not compile: %v", m.name, err)
		}
	}
}

// programs are packages as they are parsed, by folder and file.
type programs struct {
	set     *token.FileSet
	parsed  map[string]map[string]*ast.File
	imports types.Importer
}

func (p programs) read(t *testing.T, dir string) {
	t.Helper()
	if p.parsed[dir] != nil {
		return
	}
	found, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	p.parsed[dir] = map[string]*ast.File{}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(p.set, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.parsed[dir][name] = file
	}
}

// check compiles a package, as far as types go, with another text of one of its files.
func (p programs) check(file, text string) error {
	mutated, err := parser.ParseFile(p.set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, name := filepath.Split(file)
	files := maps.Clone(p.parsed[filepath.Clean(dir)])
	files[name] = mutated
	_, err = (&types.Config{Importer: p.imports}).Check(dir, p.set, slices.Collect(maps.Values(files)), nil)
	return err
}

// imports finds what packages import where the go command has compiled it.
func imports(t *testing.T, p programs) types.Importer {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}")
	for dir := range p.parsed {
		list.Args = append(list.Args, "./"+dir)
	}
	list.Dir = root
	said, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(said)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[pkg] = file
	}
	return importer.ForCompiler(p.set, "gc", func(pkg string) (io.ReadCloser, error) { return os.Open(compiled[pkg]) })
}
