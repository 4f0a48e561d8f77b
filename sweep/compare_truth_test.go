package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// truth is the true answer beside the files.
type truth struct {
	Window struct {
		From, To time.Time
		Zone     string
	}
	Lines struct {
		Repeated int `json:"repeated_effects"`
	}
	Totals   struct{ Operations, Effects int }
	Classes  struct{ Operations, Effects map[rules.Class]int }
	Findings []struct {
		Kind       recon.FindingKind
		Certainty  recon.Certainty
		Operations []recon.OperationID `json:"operation_ids"`
		Effects    []string            `json:"effect_ids"`
	}
	Operations map[recon.OperationID]string
	Effects    map[string]map[string]string
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/northwind/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// northwind compares the data set over its window and reads its truth.
func northwind(t *testing.T) (*comparison, truth) {
	t.Helper()
	var answer truth
	var window struct{ Now time.Time }
	for name, into := range map[string]any{"window.json": &window, "truth.json": &answer} {
		if err := json.Unmarshal(testdata(t, name), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	zone, err := time.LoadLocation(answer.Window.Zone)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare(context.Background(), CompareOptions{
		// Read once, as from a pipe, so that everything is kept and each class can be seen.
		Operations: io.MultiReader(bytes.NewReader(testdata(t, "operations.jsonl"))), Effects: io.MultiReader(bytes.NewReader(testdata(t, "effects.jsonl"))),
		Window: recon.Window{From: answer.Window.From, To: answer.Window.To}, Now: window.Now, Zone: zone,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, answer
}

func TestNorthwindIsExactlyItsTruth(t *testing.T) {
	t.Parallel()
	c, answer := northwind(t)
	r := c.result()
	if r.Operations != answer.Totals.Operations || r.Effects != answer.Totals.Effects || r.Repeated != answer.Lines.Repeated {
		t.Errorf("totals %d, %d, repeated %d; want %+v, %d", r.Operations, r.Effects, r.Repeated, answer.Totals, answer.Lines.Repeated)
	}
	if diff := cmp.Diff(answer.Classes.Operations, r.Classes.Operations); diff != "" {
		t.Errorf("classes of operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer.Classes.Effects, r.Classes.Effects); diff != "" {
		t.Errorf("classes of effects (-want +got):\n%s", diff)
	}
	var want, got []string
	for _, f := range answer.Findings {
		want = append(want, line(f.Kind, f.Certainty, f.Operations, f.Effects))
	}
	for _, f := range r.Findings {
		got = append(got, line(f.Kind, f.Certainty, f.Operations, f.EffectIDs))
		if f.Reason == "" || len(f.Effects) != len(f.EffectIDs) {
			t.Errorf("finding without reason or effects: %+v", f)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if len(r.Unseen) != 0 {
		t.Errorf("unseen: %+v", r.Unseen)
	}
}

func line(kind recon.FindingKind, certainty recon.Certainty, operations []recon.OperationID, effects []string) string {
	ids := []string{}
	for _, o := range operations {
		ids = append(ids, string(o))
	}
	effects = slices.Clone(effects)
	slices.Sort(ids)
	slices.Sort(effects)
	return strings.Join([]string{string(kind), string(certainty), strings.Join(ids, ","), strings.Join(effects, ",")}, " ")
}

func TestNorthwindEveryOperationAndEffectHasItsTrueClass(t *testing.T) {
	t.Parallel()
	c, answer := northwind(t)
	operations := map[recon.OperationID]string{}
	for i := range c.in.operations {
		op := c.in.operations[i]
		operations[op.ID] = "outside_window"
		if c.window.Contains(op.CreatedAt) {
			operations[op.ID] = string(c.operationClass(i))
		}
	}
	if diff := cmp.Diff(answer.Operations, operations); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	effects := map[string]map[string]string{}
	for i := range c.in.effects {
		e := c.in.effects[i]
		place := placeOfTruth(e)
		if effects[place] == nil {
			effects[place] = map[string]string{}
		}
		effects[place][e.ID] = "outside_window"
		if c.window.Contains(e.CreatedAt) {
			effects[place][e.ID] = string(c.effectClass(i))
		}
	}
	if diff := cmp.Diff(answer.Effects, effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// placeOfTruth is how the truth names a place: "-" for what a source does not have.
func placeOfTruth(e *recon.Effect) string {
	account, mode := e.Account, e.Mode
	if account == "default" {
		account = "-"
	}
	if e.Source != "stripe-main" {
		mode = "-"
	}
	return string(e.Source) + "/" + account + "/" + mode + "/" + e.Kind
}

// The short cut past the rules says what the rules say.
func TestThePlainOnesAreWhatTheRulesCallMatched(t *testing.T) {
	t.Parallel()
	c, _ := northwind(t)
	plain := 0
	for i := range c.in.operations {
		if !c.plain(c.in.operations[i], c.links[i]) {
			continue
		}
		plain++
		if j := c.judge(i, c.links[i]); j.Class != rules.ClassMatched || len(j.Findings) > 0 {
			t.Errorf("%s is %s with %d findings", c.in.operations[i].ID, j.Class, len(j.Findings))
		}
	}
	if plain < 1800 {
		t.Errorf("only %d operations take the short cut", plain)
	}
}
