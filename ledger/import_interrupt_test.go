package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// breaking is a ledger of a process of its own, whose statements go through the breaker.
func (w *world) breaking(b *breaker.Breaker) (*ledger.Ledger, error) {
	l, err := ledger.Open(w.Context(), ledger.Options{URL: w.url, MaxConns: 2, Tracer: b})
	if err == nil {
		w.Cleanup(l.Close)
	}
	return l, err
}

// imported is all that the ledger holds. Its clock stands still, so that work done again
// differs in nothing but ids.
func (w *world) imported() []string {
	w.Helper()
	return pgtest.Rows{DB: w.db, Began: t0.Add(time.Hour * 24 * 365), Now: t0.Add(time.Hour * 24 * 365)}.Read(w.T)
}

func TestAnImportOfOperationsThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	for i, s := range recon.States {
		file.WriteString(operationLine(fmt.Sprintf("op-%d", i), fmt.Sprintf(`"state":%q,"key":"k-%d","sent_at":"2026-11-02T09:00:01Z"`, s, i)))
	}
	file.WriteString(operationLine("op-9", `"state":"unknown","key":"k-1"`)) // the key of another: refused
	breaker.Experiment[*world]{
		New: func(t *testing.T) *world { return actingWorld(t) },
		Do: func(ctx context.Context, w *world, b *breaker.Breaker) error {
			l, err := w.breaking(b)
			if err != nil {
				return err
			}
			_, err = l.Import(ctx, strings.NewReader(file.String()), t0)
			return err
		},
		Again: func(w *world) { w.importing(file.String()) },
		Said:  (*world).imported,
	}.Everywhere(t)
}

// What the rows bear on is due then, also where the process died after its commit.
func TestAnImportOfEffectsThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	rows := func() *effectFile {
		named := func(e *recon.Effect) { e.Reference = "op-1" }
		f := &effectFile{lines: rowsOf(toldEffect("re_1", recon.Completed, named), toldEffect("re_2", recon.Completed), toldEffect("re_3", recon.EffectFailed))}
		f.lines = append(f.lines, ledger.EffectLine{Refused: "an amount that is none"}, ledger.EffectLine{SetAside: true})
		return f
	}
	bring := func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ImportEffects(ctx, ledger.EffectImport{Source: source, System: "stripe", File: rows(), Name: "export.csv", Now: t0.Add(time.Hour)})
		return err
	}
	breaker.Experiment[*world]{
		New: func(t *testing.T) *world {
			w := newWorld(t, pgtest.SimulatedTime(t0))
			w.seed("op-1", func(_ *recon.Operation, k *recon.Check) { k.Next = t0.Add(24 * time.Hour) })
			w.bring(toldEffect("re_3", recon.InFlight)) // which the file moves forward
			return w
		},
		Do: func(ctx context.Context, w *world, b *breaker.Breaker) error {
			l, err := w.breaking(b)
			if err != nil {
				return err
			}
			return bring(ctx, l)
		},
		Again: func(w *world) {
			if err := bring(w.Context(), w.led); err != nil {
				w.Fatal(err)
			}
			if due := one[time.Time](w, `SELECT next_check FROM reconciler.checks WHERE operation_id = 'op-1'`); due.After(t0.Add(time.Hour)) {
				w.Errorf("what a row names is looked at %s only", due)
			}
		},
		Said: (*world).imported,
	}.Everywhere(t)
}
