package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const module = "github.com/seed-1c4f4dc2/reconciler"

// tree is the source of the product: its Go files parsed, the rest by name.
type tree struct {
	fsys  fs.FS
	set   *token.FileSet
	files []file
}

type file struct {
	path string
	dir  string // the package's path below the module
	test bool   // a _test.go file
	ast  *ast.File
}

// load reads all Go files of the module; modules inside it, test data and hidden folders
// are not part of it.
func load(fsys fs.FS) (*tree, error) {
	tr := &tree{fsys: fsys, set: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || isFile(fsys, path.Join(name, "go.mod"))) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(tr.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		tr.files = append(tr.files, file{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: parsed})
		return nil
	})
	return tr, err
}

// realTree is the tree that the test stands in. It is read once; no law changes it.
var realTree = sync.OnceValues(func() (*tree, error) {
	const root = "../.."
	if !isFile(os.DirFS(root), "go.mod") {
		return nil, errors.New("the test must run in internal/archtest")
	}
	return load(os.DirFS(root))
})

// product is every file but tests.
func (tr *tree) product() []file {
	return slices.DeleteFunc(slices.Clone(tr.files), func(f file) bool { return f.test })
}

// dirs lists the folders of the product's packages.
func (tr *tree) dirs() []string {
	var dirs []string
	for _, f := range tr.product() {
		if !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
	}
	return dirs
}

// at is where a fault is, as an editor understands it.
func (tr *tree) at(node ast.Node) string {
	position := tr.set.Position(node.Pos())
	return position.Filename + ":" + strconv.Itoa(position.Line)
}

// line is the line on which a node begins.
func (tr *tree) line(pos token.Pos) int { return tr.set.Position(pos).Line }

// imports lists what a file imports.
func (f file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		paths = append(paths, importPath(spec))
	}
	return paths
}

func importPath(spec *ast.ImportSpec) string {
	text, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // Unreachable: the parser accepted it.
	}
	return text
}

// below is a package's path below the module, or false for somebody else's package.
func below(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// isCall reports whether a node is a call of pkg.name, by the name that the file most
// likely gives the package.
func isCall(node ast.Node, pkg string, names ...string) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, selector.Sel.Name)
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}
