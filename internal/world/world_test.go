package world_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/internal/world"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func run(t *testing.T, seed uint64, operations int) world.Verdict {
	t.Helper()
	start := time.Now()
	v, err := world.Run(t.Context(), world.Options{Seed: seed, Operations: operations, DatabaseURL: pgtest.EmptyURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %d operations in %s", seed, operations, time.Since(start).Round(time.Millisecond))
	return v
}

func TestEverySeedEndsInTheTruth(t *testing.T) {
	t.Parallel()
	v := run(t, 1, 300)
	for _, f := range v.Faults {
		t.Error(f)
	}
	var story bytes.Buffer
	if err := v.Tell(&story); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(v)
	t.Logf("%s\n%s", b, story.String())
	_ = recon.FindBlind
}
