package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// contextFaults finds work that nobody can stop. A clean-up that must outlive its parent
// says so in a comment on the line or the one above.
func contextFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		if f.ast.Name.Name == "main" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if isCall(node, "context", "Background", "TODO") && !tr.explained(f, node.Pos()) {
				faults = append(faults, fmt.Sprintf("%s: context.Background() outside main: take a context, or say above it why not", tr.at(node)))
			}
			return true
		})
	}
	return faults
}

// explained reports whether a comment ends on the line of pos or on the one above it.
func (tr *tree) explained(f file, pos token.Pos) bool {
	line := tr.line(pos)
	for _, comment := range f.ast.Comments {
		if end := tr.line(comment.End()); end == line || end == line-1 {
			return true
		}
	}
	return false
}

func skipFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.files {
		ast.Inspect(f.ast, func(node ast.Node) bool {
			for _, name := range []string{"b", "f", "t", "tb"} {
				if isCall(node, name, "Skip", "Skipf", "SkipNow") {
					faults = append(faults, fmt.Sprintf("%s: a skipped test shows nothing: make it run, or fail with the next step", tr.at(node)))
				}
			}
			return true
		})
	}
	return faults
}

var later = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func laterFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.files {
		for _, group := range f.ast.Comments {
			for _, comment := range group.List {
				if found := later.FindString(comment.Text); found != "" {
					faults = append(faults, fmt.Sprintf("%s: %s: do it, or open an issue", tr.at(comment), found))
				}
			}
		}
	}
	return faults
}

// sqlRooms are the packages that may hold SQL.
var sqlRooms = []string{"inbox", "internal/localpg", "internal/pgtest", "ledger", "migrations", "sources/sqldb"}

// statement finds SQL by its capital words, as everybody here writes it.
var statement = regexp.MustCompile(`(?s)\b(SELECT\s.*\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+(AS\s+\S+\s+)?SET\s|DELETE\s+FROM\s|TRUNCATE\s|MERGE\s+INTO\s|` +
	`(CREATE|ALTER|DROP)\s+(TABLE|DATABASE|FUNCTION|INDEX|ROLE|SCHEMA|TRIGGER)\s)`)

func sqlFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		if slices.Contains(sqlRooms, f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && statement.MatchString(literal.Value+" ") {
				faults = append(faults, fmt.Sprintf("%s: SQL outside its rooms (%s)", tr.at(literal), strings.Join(sqlRooms, ", ")))
			}
			return true
		})
	}
	return faults
}
