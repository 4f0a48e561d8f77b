package nightly

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// written is a world with a folder that its report is written to.
type written struct {
	*world
	dir      string
	from, to time.Time
	db       *pgxpool.Pool
}

func newWritten(t *testing.T) written {
	t.Helper()
	from, to := day(t, "2026-03-01", "UTC")
	w := written{world: newWorld(t, to.Add(3*time.Hour)), dir: t.TempDir(), from: from, to: to}
	var err error
	if w.db, err = pgxpool.New(t.Context(), w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	for n := range 3 {
		w.operation(fmt.Sprintf("op_%d", n), from.Add(time.Duration(n+1)*time.Hour), n > 0)
	}
	w.audit(from, to)
	w.at(to.Add(4 * time.Hour))
	return w
}

// says is what the folder holds, and what the ledger has kept.
func (w written) says() []string {
	w.t.Helper()
	n := w.report(w.from, w.to)
	list := append(pgtest.Rows{DB: w.db, Began: w.to.Add(4 * time.Hour), Now: w.now, Except: []pgtest.Exception{
		{Table: "runs", Text: regexp.MustCompile(`/[0-9a-f]{16}"`), Why: "names the report by the audits that it is made of, which have generated ids"},
	}}.Read(w.t),
		fmt.Sprint(n.Totals, n.Classes, len(n.Findings), n.AsOf))
	wanted := files(w.t, n)
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s as reported: %t", e.Name(), string(text) == string(wanted[e.Name()])))
	}
	return list
}

func (w written) writeAgain() {
	w.t.Helper()
	if _, err := Write(w.dir, w.report(w.from, w.to)); err != nil {
		w.t.Fatal(err)
	}
}

func TestAReportThatBreaksOffAnywhereIsTheSameReport(t *testing.T) {
	t.Parallel()
	breaker.Experiment[written]{
		New: newWritten,
		Do: func(ctx context.Context, w written, b *breaker.Breaker) error {
			l, err := ledger.Open(w.t.Context(), ledger.Options{URL: w.url, Tracer: b})
			if err != nil {
				return err
			}
			defer l.Close()
			n, err := Report{Ledger: l, Zone: w.from.Location(), Holder: "test/1"}.Make(ctx, recon.Window{From: w.from, To: w.to}, w.from.Format(time.DateOnly))
			if err != nil {
				return err
			}
			_, err = Write(w.dir, n)
			return err
		},
		Again: written.writeAgain,
		Said:  written.says,
	}.Everywhere(t)
}

// A process that dies among the files leaves some new, some old, and a part of one under
// another name.
func TestFilesThatBrokeOffAnywhereAreWrittenAgain(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	all := files(t, w.report(w.from, w.to))
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < 3 {
		t.Fatalf("only %v", names)
	}
	for stop := range len(names) + 1 {
		w.dir = t.TempDir()
		for n, name := range names {
			text := []byte("an older report")
			if n < stop {
				text = all[name]
			}
			if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w.writeAgain()
		for name, want := range all {
			if got, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(got) != string(want) {
				t.Errorf("stopped after %d files: %s is another one (%v)", stop, name, err)
			}
		}
	}
}
