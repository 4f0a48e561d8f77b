package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// entryBody is what a journal entry of the reconciling side says. The chain hashes
// its JSON text as it is written here.
type entryBody struct {
	Kind          recon.EntryKind `json:"kind"`
	At            time.Time       `json:"at"`
	By            string          `json:"by"`
	Run           string          `json:"run_id,omitempty"`
	Rule          string          `json:"rule,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	PolicyVersion int             `json:"policy_version,omitempty"`
	From          recon.State     `json:"from"`
	To            recon.State     `json:"to"`
	Release       bool            `json:"release,omitempty"`
	EffectID      string          `json:"effect_id,omitempty"`
	ErrorCode     string          `json:"error_code,omitempty"`
	Method        recon.Method    `json:"method,omitempty"`
	Outcome       recon.Outcome   `json:"outcome,omitempty"`
	LookIDs       []string        `json:"look_ids,omitempty"`
	Effects       []linkBody      `json:"effects,omitempty"`
	Findings      []findingBody   `json:"findings,omitempty"`
	Ended         []findingBody   `json:"ended,omitempty"`
	LeaseUntil    *time.Time      `json:"lease_until,omitempty"`
	Attempt       int             `json:"attempt,omitempty"`
	Holder        string          `json:"holder,omitempty"`
}

// linkBody tells how an effect was linked.
type linkBody struct {
	System      string             `json:"system"`
	Account     string             `json:"account"`
	Mode        string             `json:"mode"`
	ID          string             `json:"id"`
	Basis       recon.Basis        `json:"basis"`
	Certainty   recon.Certainty    `json:"certainty"`
	Role        recon.Role         `json:"role,omitempty"`
	Differences []recon.Difference `json:"differences,omitempty"`
}

type findingBody struct {
	ID   string            `json:"id"`
	Kind recon.FindingKind `json:"kind"`
}

// byReconciler is who writes what this package concludes; attempts are written by
// their holders, and people by their names.
const byReconciler = "reconciler"

// moveRow changes one operation and appends one entry to its journal.
type moveRow struct {
	Operation string `json:"operation_id"`
	State     string `json:"state"`
	EffectID  string `json:"effect_id,omitempty"`
	ErrorCode string `json:"error_code,omitempty"`
	Released  bool   `json:"released"`
	Slot      string `json:"slot,omitempty"`
	Kind      string `json:"kind"`
	Body      string `json:"body"`
}

// checkRow is the whole next row of checks.
type checkRow struct {
	Operation   string     `json:"operation_id"`
	Source      string     `json:"source"`
	Closed      bool       `json:"closed"`
	Next        *time.Time `json:"next_check,omitempty"`
	Looks       int        `json:"looks"`
	Blinds      int        `json:"blinds"`
	Rung        int        `json:"rung"`
	AbsentLooks int        `json:"absent_looks"`
	AbsentFirst *time.Time `json:"absent_first,omitempty"`
	AbsentLast  *time.Time `json:"absent_last,omitempty"`
	AbsentIDs   []string   `json:"absent_look_ids"`
}

//go:embed sql/conclude.sql
var concludeSQL string

// conclude writes the decisions: the operations that change with one journal entry
// each, and the plan of every one. A look that adds nothing to an operation's story
// changes its plan only.
func (l *Ledger) conclude(ctx context.Context, tx pgx.Tx, p *plan, t told, b *Batch) error {
	if len(p.conclusions) == 0 {
		return nil
	}
	looks := make(map[string]*recon.Look, len(b.Looks))
	for i := range b.Looks {
		looks[b.Looks[i].ID] = &b.Looks[i]
	}
	moves, checks := make([]moveRow, 0, len(p.conclusions)), make([]checkRow, 0, len(p.conclusions))
	for _, c := range p.conclusions {
		checks = append(checks, c.checkRow(b.Now))
		body := c.body(t, looks, b)
		if !c.adds(body) {
			continue
		}
		text, err := encode(body)
		if err != nil {
			return err
		}
		m := moveRow{
			Operation: string(c.Operation), State: string(c.To), EffectID: c.EffectID, ErrorCode: c.ErrorCode,
			Released: c.Release, Kind: string(body.Kind), Body: string(text),
		}
		if c.Release {
			m.Slot = c.row.wantsSlot
		}
		moves = append(moves, m)
	}
	movesJSON, err := encode(moves)
	if err != nil {
		return err
	}
	checksJSON, err := encode(checks)
	if err != nil {
		return err
	}
	var moved int
	if err := tx.QueryRow(ctx, concludeSQL, l.tenant, stored(b.Now), movesJSON, checksJSON).Scan(&moved); err != nil {
		if isUnique(err, "operations_slot") {
			return errRaced // another operation took the slot since we looked
		}
		return err
	}
	if moved != len(moves) {
		return fmt.Errorf("%d of %d locked operations changed", moved, len(moves)) // unreachable: they are locked
	}
	return nil
}

// adds reports whether the entry tells something that the ledger does not know yet.
func (c *conclusion) adds(b entryBody) bool {
	return c.From != c.To || c.Release || c.kept != "" || len(c.newLinks) > 0 ||
		c.EffectID != "" && c.EffectID != c.row.effectID || c.ErrorCode != "" && c.ErrorCode != c.row.errorCode ||
		len(b.Findings) > 0 || len(b.Ended) > 0
}

// body makes the one entry of this pass. It is a decision if it changes what is
// believed or told, else something seen.
func (c *conclusion) body(t told, looks map[string]*recon.Look, b *Batch) entryBody {
	e := entryBody{
		Kind: recon.EntrySeen, At: stored(b.Now), By: byReconciler, Run: b.RunID, Rule: c.Rule, Reason: c.Reason,
		PolicyVersion: c.row.policyVersion, From: c.From, To: c.To, Release: c.Release,
		EffectID: c.EffectID, ErrorCode: c.ErrorCode, LookIDs: c.LookIDs,
	}
	for _, m := range c.Links {
		e.Effects = append(e.Effects, linkBody{
			System: m.Effect.System, Account: m.Effect.Account, Mode: m.Effect.Mode, ID: m.Effect.ID,
			Basis: m.Basis, Certainty: m.Certainty, Role: m.Role, Differences: m.Differences,
		})
	}
	if c.kept == "" {
		for _, f := range c.Findings {
			print := f.Fingerprint()
			if o, new := t.opened[print]; new {
				e.Findings = append(e.Findings, findingBody{ID: o.id, Kind: o.kind})
			} else if o, new := t.changed[print]; new {
				e.Findings = append(e.Findings, findingBody{ID: o.id, Kind: o.kind})
			}
		}
		for _, print := range c.Ends {
			if o, ended := t.ended[print]; ended {
				e.Ended = append(e.Ended, findingBody{ID: o.id, Kind: o.kind})
			}
		}
	}
	e.Method, e.Outcome = answer(c.LookIDs, looks)
	if c.From != c.To || c.Release || c.kept != "" || len(e.Findings) > 0 || len(e.Ended) > 0 {
		e.Kind = recon.EntryDecision
	}
	return e
}

// answer gives method and outcome of the look that says most: one that found
// something, else one that was not blind, else any. A witness closes nothing, so what it
// said does not speak for the decision.
func answer(ids []string, looks map[string]*recon.Look) (recon.Method, recon.Outcome) {
	worth := map[recon.Outcome]int{recon.Blind: 1, recon.Absent: 2, recon.Found: 3}
	var best *recon.Look
	for _, id := range ids {
		if k := looks[id]; k != nil && !k.IsTestimony() && (best == nil || worth[k.Outcome] > worth[best.Outcome]) {
			best = k
		}
	}
	if best == nil {
		return "", ""
	}
	return best.Method, best.Outcome
}

func (c *conclusion) checkRow(now time.Time) checkRow {
	k := c.Check
	if c.kept != "" && (k.Next.IsZero() || k.Next.After(now.Add(refusedRecheck))) {
		k.Next = now.Add(refusedRecheck)
	}
	return checkRow{
		Operation: string(c.Operation), Source: c.row.source, Closed: !c.To.Open(), Next: orNull(k.Next), Looks: k.Looks,
		Blinds: k.Blinds, Rung: k.Rung, AbsentLooks: k.Absence.Looks, AbsentFirst: orNull(k.Absence.First),
		AbsentLast: orNull(k.Absence.Last), AbsentIDs: emptyList(k.Absence.LookIDs),
	}
}
