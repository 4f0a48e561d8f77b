package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Somebody ends the wait of a commit for its standby: PostgreSQL answers as if all were well,
// and what it answers is on one machine only.
func TestWhatIsPerhapsNotOnTheStandbyIsNotRecorded(t *testing.T) {
	t.Parallel()
	server := pgtest.WaitForStandby(t)
	ctx, source := t.Context(), recon.SourceName(source)
	opened := func(settings string) *ledger.Ledger {
		led, err := ledger.Open(ctx, ledger.Options{URL: server.URL + settings})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(led.Close)
		return led
	}
	led, deaf, sure := opened(""), opened("&client_min_messages=error"), opened("&synchronous_commit=on")
	if _, err := led.ApplyPolicies(ctx, []recon.Policy{repeatable()}, t0); err != nil {
		t.Fatal(err)
	}
	db := &world{T: t, db: led.Pool()}
	for _, call := range []struct {
		what string
		make func(id recon.OperationID) error
	}{
		{"an opening", func(id recon.OperationID) error { _, err := led.OpenOperation(ctx, intent(string(id))); return err }},
		{"an opening that is asked for again", func(id recon.OperationID) error { _, err := led.OpenOperation(ctx, intent(string(id))); return err }},
		{"an opening of who hears of errors only", func(id recon.OperationID) error {
			_, err := deaf.OpenOperation(ctx, intent("deaf_"+string(id)))
			return err
		}},
		{"a claim", func(id recon.OperationID) error {
			_, err := led.Claim(ctx, ledger.ClaimRequest{OperationID: id, Holder: "w"})
			return err
		}},
		{"the end of an attempt", func(id recon.OperationID) error {
			token := one[string](db, `SELECT lease_token FROM reconciler.operations WHERE operation_id = $1`, id)
			_, err := led.Finish(ctx, ledger.FinishRequest{OperationID: id, Token: token, Class: recon.ClassIndeterminate})
			return err
		}},
		{"a transaction", func(id recon.OperationID) error {
			p := repeatable()
			p.Action = string(id)
			_, err := sure.ApplyPolicies(ctx, []recon.Policy{repeatable(), p}, t0)
			return err
		}},
		{"one statement", func(id recon.OperationID) error {
			_, err := sure.HoldSource(ctx, source, string(id), time.Minute)
			return err
		}},
	} {
		for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
			answer := make(chan error, 1)
			go func() { answer <- call.make(recon.OperationID("op_" + how)) }()
			server.End(how)
			err := <-answer
			fault, ok := errors.AsType[*ledger.Fault](err)
			if !ok || fault.Kind != ledger.FaultUnconfirmed && how == "pg_cancel_backend" { // the other ends the connection too
				t.Errorf("%s, its wait ended by %s: %v", call.what, how, err)
			}
			if ok && fault.Kind == ledger.FaultUnconfirmed && !strings.Contains(err.Error(), "perhaps not on its standby") {
				t.Errorf("%s does not say what to do: %v", call.what, err)
			}
		}
	}

	server.Arrive() // and who asks again hears of what is there
	again, err := led.OpenOperation(ctx, intent("op_pg_cancel_backend"))
	if err != nil || again.Verdict != "existing" || again.State != recon.Unknown {
		t.Errorf("asked again: %+v, %v", again, err)
	}
}
