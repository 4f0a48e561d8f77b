package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"testing"
)

// secretish is what is named like a thing that lets somebody in, or is one.
var secretish = regexp.MustCompile(`(?i)(secret|password|signature|bearer|^mac|hmac)$|^(given|want)Token$`)

// secretFaults finds secrets that are compared in a time that tells how much of a guess
// was right: use hmac.Equal or subtle.ConstantTimeCompare. Held against a literal or a
// constant of ours a secret is only asked whether it is there.
func secretFaults(tr *tree) []string {
	var faults []string
	for _, f := range tr.product() {
		ast.Inspect(f.ast, func(node ast.Node) bool {
			var sides []ast.Expr
			switch n := node.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					sides = []ast.Expr{n.X, n.Y}
				}
			case *ast.SwitchStmt:
				sides = []ast.Expr{n.Tag, n.Tag}
			case *ast.CallExpr:
				if isCall(n, "bytes", "Equal", "Compare", "EqualFold") || isCall(n, "strings", "EqualFold", "Compare") ||
					isCall(n, "slices", "Contains", "Index", "Equal") || isCall(n, "reflect", "DeepEqual") {
					sides = n.Args
				}
			}
			if len(sides) != 2 || fixed(sides[0]) || fixed(sides[1]) || !isSecret(sides[0]) && !isSecret(sides[1]) {
				return true
			}
			faults = append(faults, fmt.Sprintf("%s: a secret is compared in a time that tells of it: use hmac.Equal or subtle.ConstantTimeCompare", tr.at(node)))
			return true
		})
	}
	return faults
}

func fixed(e ast.Expr) bool {
	name, isName := e.(*ast.Ident)
	_, isLiteral := e.(*ast.BasicLit)
	return isLiteral || isName && (name.Name == "nil" || name.Name == "unreadSecret")
}

func isSecret(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return secretish.MatchString(e.Name)
	case *ast.SelectorExpr:
		return secretish.MatchString(e.Sel.Name)
	case *ast.CallExpr:
		selector, ok := e.Fun.(*ast.SelectorExpr)
		return ok && (selector.Sel.Name == "Reveal" || selector.Sel.Name == "Sum" && len(e.Args) == 1)
	}
	return false
}

func TestSecretsAreComparedInConstantTime(t *testing.T) {
	plant := func(name, condition string) planted {
		return planted{
			name:  name,
			files: map[string]string{"daemon/x.go": "package daemon\nfunc f() bool { return " + condition + " }\n"},
			fault: "daemon/x.go:2: a secret is compared",
		}
	}
	hold(t, secretFaults,
		plant("by its text", `given == s.Token.Reveal()`),
		plant("by its name", `header != c.signingSecret`),
		plant("as bytes", `bytes.Equal(given, mac.Sum(nil))`),
		plant("in any case", `strings.EqualFold(signature, want)`),
		plant("among several", `slices.Contains(all, givenSecret)`),
		planted{
			name:  "in a switch",
			files: map[string]string{"daemon/x.go": "package daemon\nfunc f() {\n\tswitch password {\n\tcase x:\n\t}\n}\n"},
			fault: "daemon/x.go:3: a secret is compared",
		},
	)
}
