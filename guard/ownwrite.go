package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Own is a change in the ledger's own database.
type Own struct {
	Intent ledger.OpenRequest
	Holder string // as of a [Guard]
	// Change makes the change in the transaction and names what it made.
	Change func(ctx context.Context, tx pgx.Tx) (Made, error)
}

// Made is what a change made: its id, and what a repeat shall be told.
type Made struct {
	ID     string
	Result json.RawMessage
}

// OwnWrite makes a change in the caller's transaction at most once. Intent, change and
// outcome commit together or not at all, so nothing can be lost between them; a repeat
// changes nothing and answers with the stored result. After an error the caller must roll
// back: then nothing happened.
func OwnWrite(ctx context.Context, tx pgx.Tx, own Own) (Answer, error) {
	l := ledger.Within(tx)
	opened, err := l.OpenOperation(ctx, own.Intent)
	if err != nil {
		return failedOpening(err), err
	}
	a := opening(opened)
	if opened.Verdict != "new" && opened.Verdict != "existing" {
		return a, nil
	}
	claim, err := l.Claim(ctx, ledger.ClaimRequest{OperationID: a.Operation, Holder: own.Holder, OwnWrite: true})
	if err != nil {
		return a.uncertain(), err
	}
	if !claim.Claimed {
		return a.declined(claim), nil
	}
	made, err := own.Change(ctx, tx)
	if err != nil {
		return a.uncertain(), fmt.Errorf("make the change of %s: %w", a.Operation, err)
	}
	if made.ID == "" {
		return a.uncertain(), errors.New("the change names no id: a success that has no name cannot be checked")
	}
	a.Attempts = 1
	report := recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: made.ID, Result: made.Result}
	finish, err := l.Finish(ctx, ledger.FinishRequest{
		OperationID: a.Operation, Token: claim.Token, Class: report.Class, EffectID: made.ID, Result: made.Result,
	})
	if err != nil {
		return a.uncertain(), err
	}
	if !finish.Applied {
		return a.uncertain(), errors.New("the change took longer than its lease: roll back and try again")
	}
	return a.finished(finish, report), nil
}
