package world_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/internal/world"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// live runs a world in a database of its own and gives its verdict, with the JSON and
// the story that the demo would print.
func live(t *testing.T, seed uint64, operations int) (v world.Verdict, printed string) {
	t.Helper()
	start := time.Now()
	v, err := world.Run(t.Context(), world.Options{Seed: seed, Operations: operations, DatabaseURL: pgtest.EmptyURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %d operations in %s", seed, operations, time.Since(start).Round(time.Millisecond))
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := v.Tell(&out); err != nil {
		t.Fatal(err)
	}
	return v, out.String()
}

func TestEverySeedEndsInTheTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		v, _ := live(t, 100+seed, 50)
		for _, f := range v.Faults {
			t.Errorf("seed %d: %s", 100+seed, f)
		}
	}
}

func TestTheUsualDemoHasEveryKindOfTrouble(t *testing.T) {
	t.Parallel()
	v, printed := live(t, 1, 300)
	if v.Wrong != 0 {
		t.Errorf("wrong: %v", v.Faults)
	}
	if diff := cmp.Diff(v.Planted, v.Findings); diff != "" {
		t.Errorf("findings differ from what was planted (-planted +found):\n%s", diff)
	}
	total := 0
	for _, n := range v.Planted {
		total += n
	}
	if len(v.Planted) < 3 || total < 5 {
		t.Errorf("planted %v: want at least three kinds and five in all", v.Planted)
	}
	if v.ClosedByEvidence == 0 || v.Escalated == 0 || v.Messages == 0 || v.Findings[recon.FindBlind] != 1 {
		t.Errorf("the world is too quiet: %+v", v)
	}
	talesAreTrue(t, printed)
	t.Log(printed)
}

// talesAreTrue holds the story of seed 1 against its own titles.
func talesAreTrue(t *testing.T, printed string) {
	t.Helper()
	_, posts, _ := strings.Cut(printed, "messages would have gone out")
	if posts == "" || strings.Contains(posts, "Ended:") {
		t.Errorf("messages that ended are told as waiting:\n%s", posts)
	}
	for title, lines := range map[string][]string{
		"Request lost, released after complete looks found nothing, then sent again": {"Mon 14:50 unknown_rec", "Mon 15:52 succeeded", "unknown → pending. ", "succeeded, by the agent's own answer"},
		"The agent woke after the key had expired":                                   {"Mon 13:06 unknown_rec", "Tue 15:06 unknown_rec"},
	} {
		_, tale, _ := strings.Cut(printed, title)
		tale, _, _ = strings.Cut(tale, "\n\n")
		for _, line := range lines {
			if !strings.Contains(tale, line) {
				t.Errorf("%s: no %q in%s", title, line, tale)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	t.Parallel()
	_, first := live(t, 7, 40)
	_, second := live(t, 7, 40)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
}
