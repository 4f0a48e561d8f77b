package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestStoriesAreThoseOfEachOneInTheOrderAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []recon.OperationID{"op-2", "op-3", "op-1"}
	for _, id := range ids {
		w.seed(string(id))
	}
	got, err := w.led.Stories(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	want := []recon.Story{w.story("op-2"), w.story("op-3"), w.story("op-1")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("together and one by one they differ:\n%s", diff)
	}
	_, err = w.led.Stories(t.Context(), []recon.OperationID{"op-1", "op-none"})
	if missing, ok := errors.AsType[*ledger.NotFoundError](err); !ok || missing.ID != "op-none" {
		t.Errorf("got %v, want a NotFoundError of op-none", err)
	}
}
