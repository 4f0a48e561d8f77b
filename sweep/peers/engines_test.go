package peers

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// engine is one way to reconcile a pair of tables.
type engine struct {
	name string
	run  func(t *testing.T, p pair) result
}

// result is what one run took and found.
type result struct {
	wall, cpu time.Duration // cpu is 0 where it is not known
	peak      int64         // bytes that were held at most
	found     []string      // "kind operation effect", sorted; a part that says nothing is left out
}

// engines are ours and its peers. What they need is built, or named as missing.
func engines(t *testing.T) []engine {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is not installed, and one of the peers is a Python script; install it, on Debian with: apt-get install python3")
	}
	dir := t.TempDir()
	ours, duck := filepath.Join(dir, "reconciler"), filepath.Join(dir, "duck")
	build(t, "../..", ours, "./cmd/reconciler")
	build(t, ".", duck, "./duck")
	return []engine{
		{"reconciler compare", func(t *testing.T, p pair) result { return compare(t, ours, p) }},
		{"DuckDB", func(t *testing.T, p pair) result { return script(t, p, duck) }},
		{"Python, csv and dict", func(t *testing.T, p pair) result { return script(t, p, python, "plain.py") }},
		{"PostgreSQL, COPY and full join", postgres},
	}
}

func build(t *testing.T, dir, out, pkg string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v; DuckDB needs a C compiler and CGO_ENABLED=1\n%s", pkg, err, said)
	}
}

// run measures a process to its end.
func run(t *testing.T, name string, args ...string) ([]byte, result) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	began := time.Now()
	out, err := cmd.Output()
	r := result{wall: time.Since(began)}
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("%s: %v\n%s", name, err, exit.Stderr)
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.peak = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	return out, r
}

// compare is ours. Its findings are told as the peers tell theirs.
func compare(t *testing.T, program string, p pair) result {
	t.Helper()
	out, r := run(t, program, "compare", "--operations", p.operations, "--effects", p.effects, "--effects-format", "export",
		"--config", "reconciler.yaml", "--now", "2026-03-01T00:00:00Z", "--format", "json")
	var said struct {
		Findings []struct {
			Kind       string
			Operations []string `json:"operation_ids"`
			Effects    []string `json:"effect_ids"`
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	for _, f := range said.Findings {
		if f.Kind == "duplicate" { // ours names both effects; the peers the later one
			f.Effects = nil
		}
		r.found = append(r.found, strings.Join(slices.Concat([]string{f.Kind}, f.Operations, f.Effects), " "))
	}
	slices.Sort(r.found)
	return r
}

// script is a program that writes its findings as a table.
func script(t *testing.T, p pair, name string, args ...string) result {
	t.Helper()
	out := filepath.Join(t.TempDir(), "found.csv")
	_, r := run(t, name, append(args, p.operations, p.effects, out)...)
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatal(err, rows)
	}
	for _, row := range rows[1:] {
		r.found = append(r.found, told(row[0], row[1], row[2]))
	}
	slices.Sort(r.found)
	return r
}

func told(kind, operation, effect string) string {
	if kind == "duplicate" {
		effect = ""
	}
	return strings.Join(slices.DeleteFunc([]string{kind, operation, effect}, func(s string) bool { return s == "" }), " ")
}

// The tables have the columns of the files, and no index, which nothing here would use.
const tablesSQL = `
CREATE TABLE o (id text, source text, action text, target text, key text, effect_id text, parent text, amount bigint, currency text, state text, created_at timestamptz);
CREATE TABLE e (id text, reference text, key text, parent text, amount bigint, currency text, status text, created_at timestamptz)`

const joinSQL = `
CREATE TABLE found AS
SELECT * FROM (
	SELECT o.id AS op, e.id AS effect, CASE WHEN e.id IS NULL THEN 'missing' WHEN o.id IS NULL THEN 'orphan' WHEN e.rn > 1 THEN 'duplicate'
		WHEN o.amount <> e.amount OR o.currency <> e.currency THEN 'mismatch' ELSE 'matched' END AS kind
	FROM o FULL OUTER JOIN (SELECT *, row_number() OVER (PARTITION BY key ORDER BY created_at, id) AS rn FROM e) e ON o.key = e.key) j
WHERE kind <> 'matched'`

// postgres copies both files into a database and joins them there. What it holds is the
// backend's own peak, shared buffers included as far as it touched them.
func postgres(t *testing.T, p pair) result {
	t.Helper()
	ctx := t.Context()
	db, err := pgx.Connect(ctx, pgtest.EmptyURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(ctx))
	if _, err := db.Exec(ctx, tablesSQL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for table, name := range map[string]string{"o": p.operations, "e": p.effects} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.PgConn().CopyFrom(ctx, f, "COPY "+table+" FROM STDIN (FORMAT csv, HEADER)")
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(ctx, joinSQL); err != nil {
		t.Fatal(err)
	}
	r := result{wall: time.Since(began), peak: peakOf(t, db.PgConn().PID())}
	rows, err := db.Query(ctx, "SELECT kind, coalesce(op, ''), coalesce(effect, '') FROM found")
	if err != nil {
		t.Fatal(err)
	}
	r.found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var kind, op, effect string
		err := row.Scan(&kind, &op, &effect)
		return told(kind, op, effect), err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(r.found)
	return r
}

// peakOf reads the most memory that a process has held, which Linux tells; elsewhere it is 0.
func peakOf(t *testing.T, pid uint32) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Logf("the memory of PostgreSQL is not known: %v", err)
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}
