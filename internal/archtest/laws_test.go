package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// planted is a small tree that breaks a law in one place.
type planted struct {
	name  string
	files map[string]string
	fault string // what must be said about it
}

// hold tests a law: the real tree has no fault, and every planted one is seen.
func hold(t *testing.T, law func(*tree) []string, plants ...planted) {
	t.Helper()
	t.Parallel()
	real, err := realTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range law(real) {
		t.Error(fault)
	}
	for _, plant := range plants {
		t.Run("a planted fault is seen: "+plant.name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for name, text := range plant.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tr, err := load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			faults := law(tr)
			if !strings.Contains(strings.Join(faults, "\n"), plant.fault) {
				t.Errorf("got %q, want one with %q", faults, plant.fault)
			}
		})
	}
}

func TestImportsFollowTheFloors(t *testing.T) {
	hold(t, floorFaults,
		planted{
			name:  "a sibling is imported",
			files: map[string]string{"rules/x.go": "package rules\nimport _ \"" + module + "/ledger\"\n"},
			fault: "rules/x.go: floor 1 imports ledger, floor 1",
		},
		planted{
			name:  "a package without a floor",
			files: map[string]string{"attic/x.go": "package attic\n"},
			fault: "attic has no floor",
		},
		planted{
			name:  "the product imports what serves tests",
			files: map[string]string{"daemon/x.go": "package daemon\nimport _ \"" + module + "/internal/pgtest\"\n"},
			fault: "daemon/x.go: imports internal/pgtest",
		},
	)
}

func TestExportedTypesOfRecon(t *testing.T) {
	hold(t, vocabularyFaults,
		planted{
			name:  "recon imports a library",
			files: map[string]string{"recon/x.go": "package recon\nimport \"example.com/x\"\n"},
			fault: "recon/x.go: imports example.com/x",
		},
		planted{
			name:  "a new type",
			files: map[string]string{"recon/x.go": "package recon\ntype Novelty struct{}\n"},
			fault: "recon/x.go:2: type Novelty is new",
		},
		planted{
			name:  "a type that is gone",
			files: map[string]string{"recon/x.go": "package recon\n"},
			fault: "type Operation is gone",
		},
	)
}

func TestPurePackagesJudgeByTheirArgumentsAlone(t *testing.T) {
	hold(t, purityFaults,
		planted{
			name:  "a pure package does I/O",
			files: map[string]string{"rules/x.go": "package rules\nimport \"os\"\n"},
			fault: "rules/x.go: imports os",
		},
		planted{
			name:  "a pure package asks the clock",
			files: map[string]string{"matchers/x.go": "package matchers\nimport \"time\"\nfunc f() time.Time { return time.Now() }\n"},
			fault: "matchers/x.go:3: asks the clock",
		},
	)
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	hold(t, commentFaults,
		planted{
			name:  "no comment",
			files: map[string]string{"sweep/x.go": "package sweep\n"},
			fault: "sweep has no package comment",
		},
	)
}

func TestPackagesAreNamedForNouns(t *testing.T) {
	hold(t, nameFaults,
		planted{
			name:  "helpers",
			files: map[string]string{"helpers/x.go": "package helpers\n"},
			fault: "helpers: is no noun",
		},
		planted{
			name:  "another name than its folder",
			files: map[string]string{"sweep/x.go": "package sweeper\n"},
			fault: "sweep/x.go: package sweeper",
		},
	)
}

func TestNothingHappensByBeingImported(t *testing.T) {
	hold(t, initFaults,
		planted{
			name:  "init",
			files: map[string]string{"rules/x.go": "package rules\nfunc init() {}\n"},
			fault: "rules/x.go:2: init()",
		},
		planted{
			name:  "a blank import",
			files: map[string]string{"cmd/reconciler/x.go": "package main\nimport _ \"example.com/driver\"\n"},
			fault: "cmd/reconciler/x.go:2: blank import of example.com/driver",
		},
	)
}

func TestContextsComeFromMain(t *testing.T) {
	hold(t, contextFaults,
		planted{
			name:  "a context out of nowhere",
			files: map[string]string{"ledger/x.go": "package ledger\nimport \"context\"\n\nvar ctx = context.Background()\n"},
			fault: "ledger/x.go:4: context.Background()",
		},
	)
}

func TestSQLStandsInItsRooms(t *testing.T) {
	hold(t, sqlFaults,
		planted{
			name:  "SQL in a sweep",
			files: map[string]string{"sweep/x.go": "package sweep\n\nconst q = `\n  SELECT id\n  FROM operations`\n"},
			fault: "sweep/x.go:3: SQL",
		},
	)
}

func TestNoTestIsSkipped(t *testing.T) {
	hold(t, skipFaults,
		planted{
			name:  "Skip",
			files: map[string]string{"sweep/x_test.go": "package sweep\nfunc TestX(t *testing.T) { t.Skip() }\n"},
			fault: "sweep/x_test.go:2: a skipped test",
		},
	)
}

func TestNothingIsLeftForLater(t *testing.T) {
	hold(t, laterFaults,
		planted{
			name:  "a note in a comment",
			files: map[string]string{"sweep/x.go": "package sweep\n\n// TO" + "DO: the rest\n"},
			fault: "sweep/x.go:3: ",
		},
	)
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	hold(t, migrationFaults,
		planted{
			name:  "a gap",
			files: map[string]string{"migrations/000001_create_a.sql": "", "migrations/000003_create_b.sql": ""},
			fault: "migrations/000003_create_b.sql: want number 000002",
		},
		planted{
			name:  "one number twice",
			files: map[string]string{"migrations/000001_create_a.sql": "", "migrations/000001_create_b.sql": ""},
			fault: "migrations/000001_create_b.sql: want number 000002",
		},
	)
}

func TestPapersNameWhatExists(t *testing.T) {
	hold(t, paperFaults,
		planted{
			name:  "a test that is gone",
			files: map[string]string{"ARCHITECTURE.md": "held by `TestGhost`\n"},
			fault: "ARCHITECTURE.md:1: there is no TestGhost",
		},
		planted{
			name:  "a file that is gone",
			files: map[string]string{"ARCHITECTURE.md": "\nsee `sweep/ghost.go`\n", "sweep/x.go": "package sweep\n"},
			fault: "ARCHITECTURE.md:2: there is no sweep/ghost.go",
		},
		planted{
			name:  "a declaration that is gone",
			files: map[string]string{"ARCHITECTURE.md": "see `sweep.Ghost`\n", "sweep/x.go": "package sweep\n"},
			fault: "ARCHITECTURE.md:1: there is no sweep.Ghost",
		},
	)
}

func TestCodeKeepsItsBudgets(t *testing.T) {
	hold(t, budgetFaults,
		planted{
			name:  "a long function",
			files: map[string]string{"sweep/x.go": "package sweep\nfunc f() {" + strings.Repeat("\n", 71) + "}\n"},
			fault: "sweep/x.go:2: f has 72 lines",
		},
		planted{
			name:  "a long file",
			files: map[string]string{"sweep/x.go": "package sweep\n" + strings.Repeat("\n", 400)},
			fault: "sweep/x.go: 401 lines",
		},
		planted{
			name:  "many parameters",
			files: map[string]string{"sweep/x.go": "package sweep\nfunc f(ctx context.Context, a, b, c, d int, e string) {}\n"},
			fault: "sweep/x.go:2: f has 5 parameters",
		},
	)
}
