package sweep_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// bothWays compares files that can be read again, of which little is kept, and the same
// from pipes, of which everything is.
func bothWays(t interface {
	Helper()
	Fatalf(string, ...any)
}, operations, effects string, w recon.Window) sweep.CompareResult {
	t.Helper()
	o := sweep.CompareOptions{Operations: strings.NewReader(operations), Effects: strings.NewReader(effects), Now: april, Window: w}
	sieved, sievedErr := sweep.Compare(context.Background(), o)
	o.Operations, o.Effects = io.MultiReader(strings.NewReader(operations)), io.MultiReader(strings.NewReader(effects))
	whole, wholeErr := sweep.Compare(context.Background(), o)
	// Of faults in both files either may be told: they are read at the same time.
	if (sievedErr == nil) != (wholeErr == nil) {
		t.Fatalf("files: %v\npipes: %v", sievedErr, wholeErr)
	}
	if diff := cmp.Diff(whole, sieved); diff != "" {
		t.Fatalf("(-pipes +files):\n%s\noperations:\n%seffects:\n%s", diff, operations, effects)
	}
	o.Operations, o.Effects, o.OperationsTable = strings.NewReader(tableOf(t, operations)), strings.NewReader(effects), true
	tabled, tabledErr := sweep.Compare(context.Background(), o)
	if diff := cmp.Diff(sieved, tabled); diff != "" || (tabledErr == nil) != (sievedErr == nil) {
		t.Fatalf("lines: %v, table: %v (-lines +table):\n%s\noperations:\n%seffects:\n%s", sievedErr, tabledErr, diff, operations, effects)
	}
	return sieved
}

// tableOf writes lines of operations as a table.
func tableOf(t interface{ Fatalf(string, ...any) }, operations string) string {
	names := []string{"id", "source", "action", "target", "state", "created_at"} // which a table needs
	var rows []map[string]any
	for l := range strings.Lines(operations) {
		row := map[string]any{}
		if err := json.Unmarshal([]byte(l), &row); err != nil {
			t.Fatalf("%v", err)
		}
		for name := range row {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		rows = append(rows, row)
	}
	var text strings.Builder
	out := csv.NewWriter(&text)
	write := func(cells []string) {
		if err := out.Write(cells); err != nil {
			t.Fatalf("%v", err)
		}
	}
	write(names)
	for _, row := range rows {
		cells := make([]string, len(names))
		for i, name := range names {
			if v, ok := row[name]; ok {
				cells[i] = strings.Trim(fmt.Sprint(v), "[]") // marks are words beside each other
			}
		}
		write(cells)
	}
	out.Flush()
	return text.String()
}

func TestLawFilesAndPipesGiveTheSameAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, options ...string) string { return rapid.SampledFrom(options).Draw(t, label) }
		field := func(name string, options ...string) string {
			if v := pick(name, options...); v != "" {
				return fmt.Sprintf(`,%q:%q`, name, v)
			}
			return ""
		}
		money := func(most int) string {
			if rapid.IntRange(0, 9).Draw(t, "amounts") == 0 {
				return ""
			}
			return fmt.Sprintf(`,"amount":%d,"currency":%q`, rapid.IntRange(1, most).Draw(t, "amount"), pick("currency", "EUR", "EUR", "EUR", "USD"))
		}
		var ops, effs []string
		for i := range rapid.IntRange(1, 8).Draw(t, "operations") {
			ops = append(ops, fmt.Sprintf(`{"id":"op_%d","source":%q,"action":%q,"target":%q,"state":%q,"created_at":"2026-03-10T10:0%d:00Z"%s%s%s%s%s%s%s%s%s}`,
				i, pick("source", "stripe", "stripe", "stripe", "bank"), pick("action", "refund.create", "refund.create", "charge.create"), pick("target", "order:1", "order:2", fmt.Sprintf("order:u%d", i), fmt.Sprintf("order:u%d", i), fmt.Sprintf("order:u%d", i)),
				pick("state", "succeeded", "succeeded", "succeeded", "succeeded", "failed", "unknown", "pending"), i,
				money(3), field("key", "", "k1", "k2", fmt.Sprintf("k-%d", i)), field("effect_id", "", "", "re_0", "re_1", fmt.Sprintf("re_%d", i)),
				field("parent", "", "ch_1", "ch_2", "re_0"), field("group", "", "", "", "", "g"), field("reference", "", "", "", "N1", "N2"),
				field("account", "", "", "", "acct_1"), field("mode", "", "", "", "test"), field("run", "", "", "r1")))
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "effects") {
			total := ""
			if rapid.IntRange(0, 4).Draw(t, "totals") == 0 {
				total = fmt.Sprintf(`,"parent_total":%d`, rapid.IntRange(0, 4).Draw(t, "total"))
			}
			effs = append(effs, fmt.Sprintf(`{"id":"re_%d","source":%q,"kind":%q,"status":%q,"created_at":"2026-03-10T10:%02d:05Z"%s%s%s%s%s%s%s%s%s%s}`,
				rapid.IntRange(0, 8).Draw(t, "id"), pick("source", "stripe", "stripe", "stripe", "bank"), pick("kind", "refund", "refund", "refund", "charge"),
				pick("status", "completed", "completed", "completed", "in_flight", "failed", "reversed"), i,
				money(3), total, field("reference", "", "op_0", "op_1", fmt.Sprintf("op_%d", i), fmt.Sprintf("op_%d", i), " op_2 ", "OP_3", "g", "op_99"),
				field("key", "", "", "k1", "k2", fmt.Sprintf("k-%d", i)), field("parent", "", "ch_1", "ch_2", "re_0", "re_1"),
				field("natural_reference", "", "", "", "", "N1"), field("caused_by", "", "", "", "", "re_0", "re_1"),
				field("account", "", "", "", "acct_1"), field("mode", "", "", "", "test"), field("target", "", "", "", "order:1")))
		}
		w := recon.Window{}
		if rapid.Bool().Draw(t, "a window") {
			w = recon.Window{From: time.Date(2026, 3, 10, 10, 2, 0, 0, time.UTC), To: time.Date(2026, 3, 10, 10, 5, 0, 0, time.UTC)}
		}
		bothWays(t, lines(ops...), lines(effs...), w)
	})
}

func TestAFileThatCannotBeReadAgainIsReadOnce(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "succeeded", "")), "", func(o *sweep.CompareOptions) {
		o.Effects = io.MultiReader(strings.NewReader(lines(eff("re_1", "completed", `,"reference":"op_1"`))))
	})
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1})
}

// grows is a file that is longer when it is read again.
type grows struct {
	*strings.Reader
	more string
}

func (g *grows) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if err == io.EOF {
		g.Reader = strings.NewReader(g.more)
	}
	return n, err
}

func TestAFileThatChangesWhileItIsReadIsRefused(t *testing.T) {
	t.Parallel()
	one := lines(op("op_1", "succeeded", ""))
	_, err := tryCompare("", lines(eff("re_1", "completed", `,"reference":"op_1"`)), func(o *sweep.CompareOptions) {
		o.Operations = &grows{strings.NewReader(one), one + lines(op("op_2", "succeeded", ""))}
	})
	if err == nil || !strings.Contains(err.Error(), "ops.jsonl: it changed while it was read") {
		t.Errorf("error %v", err)
	}
}

// rewritten is a file in which somebody writes once it was read.
type rewritten struct {
	*os.File
	text string
}

func (r *rewritten) Read(b []byte) (int, error) {
	n, err := r.File.Read(b)
	if err == io.EOF && r.text != "" {
		if err := os.WriteFile(r.Name(), []byte(r.text), 0o600); err != nil {
			return n, err
		}
		r.text = ""
		return n, errors.Join(os.Chtimes(r.Name(), time.Time{}, time.Now().Add(time.Minute)), io.EOF)
	}
	return n, err
}

// What is written in place and has the same length is another file all the same: its answer
// would be that of neither.
func TestAFileThatIsRewrittenInPlaceIsRefused(t *testing.T) {
	t.Parallel()
	was, is := lines(op("op_1", "unknown", "")), lines(op("op_1", "pending", ""))
	if len(was) != len(is) {
		t.Fatal("they have not the same length")
	}
	name := filepath.Join(t.TempDir(), "ops.jsonl")
	if err := os.WriteFile(name, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = tryCompare("", lines(eff("re_1", "completed", `,"reference":"op_1"`)), func(o *sweep.CompareOptions) {
		o.Operations = &rewritten{f, is}
	})
	if err == nil || !strings.Contains(err.Error(), "ops.jsonl: it changed while it was read") {
		t.Errorf("error %v", err)
	}
}

// TestManyRowsAreSiftedAsTheyAreCompared is the law above for files of which most is plain
// and a few identities stand in several rows, anywhere: these are found by hashes and bits.
func TestManyRowsAreSiftedAsTheyAreCompared(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 5))
	const n = 10_000
	var ops, effs []string
	for i := range n {
		seldom := func() bool { return random.IntN(300) == 0 }
		row := func() int { // mostly the row itself
			if seldom() {
				return random.IntN(n)
			}
			return i
		}
		ops = append(ops, op(fmt.Sprintf("op_%d", i), "succeeded", fmt.Sprintf(`,"key":"k%d","effect_id":"re_%d","amount":%d,"currency":"EUR"`, row(), row(), 1+row())))
		if seldom() {
			continue
		}
		reference := ""
		if random.IntN(3) > 0 {
			reference = fmt.Sprintf(`,"reference":"op_%d"`, row())
		}
		effs = append(effs, eff(fmt.Sprintf("re_%d", i), "completed", fmt.Sprintf(`%s,"key":"k%d","amount":%d,"currency":"EUR"`, reference, row(), 1+i)))
		if seldom() {
			effs = append(effs, effs[len(effs)-1])
		}
	}
	r := bothWays(t, lines(ops...), lines(effs...), recon.Window{})
	if r.Operations != n || r.Classes.Operations["matched"] == n || r.Classes.Operations["matched"] < n/2 || r.Repeated == 0 {
		t.Errorf("what was drawn shows little: %d operations, %v, %d repeated", r.Operations, r.Classes.Operations, r.Repeated)
	}
}
