package ledger_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestStandingIsWhatTheFunctionSays(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	for _, state := range []recon.State{recon.Pending, recon.InProgress, recon.Unknown, recon.ManualReview, recon.Succeeded, recon.Failed} {
		var got ledger.Standing
		if err := json.Unmarshal(one[[]byte](w, `SELECT reconciler.verdict_of($1)`, string(state)), &got); err != nil {
			t.Fatal(err)
		}
		diff(t, string(state), got, ledger.StandingOf(state))
	}
}

func TestAnIntentInATransactionIsThereOnlyIfItCommits(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	ctx := t.Context()
	for _, c := range []struct {
		id    string
		end   func(pgx.Tx) error
		count int
	}{
		{"kept", func(tx pgx.Tx) error { return tx.Commit(ctx) }, 1},
		{"dropped", func(tx pgx.Tx) error { return tx.Rollback(ctx) }, 0},
	} {
		tx, err := w.db.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		in := ledger.Within(tx)
		opened, err := in.OpenOperation(ctx, intent(c.id))
		if err != nil || opened.Verdict != "new" {
			t.Fatalf("%s: %+v, %v", c.id, opened, err)
		}
		claim, err := in.Claim(ctx, ledger.ClaimRequest{OperationID: opened.OperationID, Holder: "w"})
		if err != nil || claim.Claimed {
			t.Errorf("%s: claimed before the commit: %+v, %v", c.id, claim, err)
		}
		if err := c.end(tx); err != nil {
			t.Fatal(err)
		}
		if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE operation_id = $1`, c.id); n != c.count {
			t.Errorf("%s: %d rows, want %d", c.id, n, c.count)
		}
	}
}

func TestWithinAStricterTransactionTheFaultIsOneToTryAgain(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	tx, err := w.db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = ledger.Within(tx).OpenOperation(t.Context(), intent("op"))
	var fault *ledger.Fault
	if !errors.As(err, &fault) || fault.Kind != ledger.FaultConflict {
		t.Errorf("error %v, want a fault of kind conflict", err)
	}
}
