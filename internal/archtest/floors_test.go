package archtest

import (
	"fmt"
	"path"
	"strings"
)

// harness is the floor of what serves tests: it may import anything, and only tests (and
// the rest of the harness) may import it.
const harness = -1

// floors says on which floor every package stands. A package imports only from floors
// below its own; packages of one floor never import each other, but a child may import
// the roots of its family. A line that ends in /... holds for all children. Adding a
// package means adding a line, in sight of whoever reads the change.
var floors = []struct {
	path  string
	floor int
}{
	{"attempt", 0},
	{"recon", 0},
	{"migrations", 0},

	{"sources", 1},
	{"sources/...", 1},
	{"matchers", 1},
	{"rules", 1},
	{"ledger", 1},
	{"inbox", 1},
	{"escalation", 1},
	{"escalation/...", 1},
	{"reports", 1},
	{"internal/localpg", 1},

	{"sweep", 2},
	{"guard", 2},
	{"nightly", 2},

	{"config", 3},
	{"internal/world", 3},

	{"daemon", 4},

	{"cmd/reconciler", 5},
	{"internal/world/large", 5},
	{"internal/world/soak", 6},
	{"examples", 5},
	{"examples/agents/...", 5},
	{"examples/crm", 5},
	{"examples/tickets", 5},
	{"internal/benchmarks", 5},
	{"internal/localpg/find", 5},
	{"internal/mutants", 5},

	{"sources/sourcetest", harness},
	{"internal/archtest", harness},
	{"internal/breaker", harness},
	{"internal/loopback", harness},
	{"internal/pgtest", harness},
	{"internal/turns", harness},
}

// floorOf finds the exact line of a package before that of its family.
func floorOf(dir string) (int, bool) {
	for _, line := range floors {
		if line.path == dir {
			return line.floor, true
		}
	}
	for _, line := range floors {
		if family, ok := strings.CutSuffix(line.path, "/..."); ok && strings.HasPrefix(dir, family+"/") {
			return line.floor, true
		}
	}
	return 0, false
}

func floorFaults(tr *tree) []string {
	var faults []string
	for _, dir := range tr.dirs() {
		if _, ok := floorOf(dir); !ok {
			faults = append(faults, fmt.Sprintf("%s has no floor: give it one in internal/archtest", dir))
		}
	}
	for _, f := range tr.product() {
		floor, ok := floorOf(f.dir)
		if !ok || floor == harness {
			continue
		}
		for _, imported := range f.imports() {
			dir, ours := below(imported)
			if !ours || isFamilyRoot(dir, f.dir) {
				continue
			}
			switch other, known := floorOf(dir); {
			case !known:
				// Told above, unless there is no such package, which the compiler tells.
			case other == harness:
				faults = append(faults, fmt.Sprintf("%s: imports %s, which serves tests only", f.path, dir))
			case other >= floor:
				faults = append(faults, fmt.Sprintf("%s: floor %d imports %s, floor %d", f.path, floor, dir, other))
			}
		}
	}
	return faults
}

// isFamilyRoot reports whether dir is a folder above child.
func isFamilyRoot(dir, child string) bool {
	for up := path.Dir(child); up != "."; up = path.Dir(up) {
		if up == dir {
			return true
		}
	}
	return false
}
