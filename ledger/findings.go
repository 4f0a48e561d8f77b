package ledger

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// findingRow is a row of findings as it is written.
type findingRow struct {
	ID          string             `json:"finding_id"`
	Fingerprint string             `json:"fingerprint"`
	Kind        string             `json:"kind"`
	Certainty   string             `json:"certainty"`
	Source      string             `json:"source"`
	Operations  []string           `json:"operation_ids"`
	EffectIDs   []string           `json:"effect_ids"`
	Effects     []recon.EffectRef  `json:"effects"`
	Observed    []recon.Difference `json:"observed"`
	Reason      string             `json:"reason"`
	Amount      int64              `json:"amount,omitempty"`
	Currency    string             `json:"currency,omitempty"`
}

func findingRowOf(f recon.Finding, fingerprint string) (findingRow, error) {
	id, err := uuid.NewV7()
	r := findingRow{
		ID: id.String(), Fingerprint: fingerprint, Kind: string(f.Kind), Certainty: string(f.Certainty), Source: string(f.Source),
		Operations: texts(f.Operations), EffectIDs: make([]string, 0, len(f.Effects)), Effects: emptyList(slices.Clone(f.Effects)),
		Observed: emptyList(slices.Clone(f.Observed)), Reason: f.Reason, Amount: f.Money.Minor, Currency: f.Money.Currency,
	}
	for _, e := range f.Effects {
		r.EffectIDs = append(r.EffectIDs, e.ID)
	}
	// One order, so that the same values observed again are equal.
	slices.Sort(r.Operations)
	slices.Sort(r.EffectIDs)
	slices.SortFunc(r.Effects, func(a, b recon.EffectRef) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(r.Observed, func(a, b recon.Difference) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Ours, b.Ours), strings.Compare(a.Theirs, b.Theirs))
	})
	return r, err
}

// noticeRow is a row of notices as it is written.
type noticeRow struct {
	ID          string    `json:"notice_id"`
	Fingerprint string    `json:"fingerprint"`
	Operation   string    `json:"operation_id,omitempty"`
	Step        string    `json:"step"`
	Destination string    `json:"destination"`
	Reason      string    `json:"reason"`
	DueAt       time.Time `json:"due_at"`
}

// tellings is what a batch says to people: findings, ends of findings, notices.
type tellings struct {
	findings map[string]recon.Finding // by fingerprint
	ends     map[string]string        // fingerprint to reason
	notices  []recon.Notice
}

// tellings collects what the surviving decisions and the batch itself say. A notice
// that only a lost decision asked for is left out: the next pass plans it again.
func (p *plan) tellings(b *Batch) tellings {
	t := tellings{findings: map[string]recon.Finding{}, ends: map[string]string{}}
	alive := map[recon.OperationID]bool{}
	for _, c := range p.conclusions {
		alive[c.Operation] = true
		if c.kept != "" {
			continue
		}
		for _, f := range c.Findings {
			t.findings[f.Fingerprint()] = f
		}
		for _, f := range c.Ends {
			t.ends[f] = c.Reason
		}
	}
	for _, f := range b.Findings {
		t.findings[f.Fingerprint()] = f
	}
	for _, f := range b.Ends {
		t.ends[f] = "no longer so"
	}
	unsaid := map[string]bool{} // by lost and kept decisions, and by nobody else
	for _, d := range b.Decisions {
		for _, f := range d.Findings {
			unsaid[f.Fingerprint()] = true
		}
		for _, f := range d.Ends {
			unsaid[f] = true
		}
	}
	for f := range t.findings {
		delete(t.ends, f) // what one decision still sees has not ended
		delete(unsaid, f)
	}
	for f := range t.ends {
		delete(unsaid, f)
	}
	for _, n := range b.Notices {
		_, decided := b.Versions[n.Operation]
		if !unsaid[n.Finding] && (!decided || alive[n.Operation] || t.has(n.Finding)) {
			t.notices = append(t.notices, n)
		}
	}
	return t
}

func (t tellings) has(fingerprint string) bool {
	_, found := t.findings[fingerprint]
	_, ended := t.ends[fingerprint]
	return found || ended
}

// toldFinding is one finding that a statement opened, changed or ended.
type toldFinding struct {
	id   string
	kind recon.FindingKind
}

// told is what became of findings, by fingerprint.
type told struct {
	opened, changed, ended map[string]toldFinding
}

func (t told) count(out *Recorded) {
	for _, f := range t.opened {
		out.Opened[f.kind]++
	}
	for _, f := range t.ended {
		out.Ended[f.kind]++
	}
}

//go:embed sql/save_findings.sql
var saveFindingsSQL string

// saveFindings writes findings by their fingerprint, ends others, and stores the
// notices of those that are open or ended just now, in one statement.
func (l *Ledger) saveFindings(ctx context.Context, tx pgx.Tx, t tellings, now time.Time) (told, error) {
	out := told{opened: map[string]toldFinding{}, changed: map[string]toldFinding{}, ended: map[string]toldFinding{}}
	if len(t.findings) == 0 && len(t.ends) == 0 && len(t.notices) == 0 {
		return out, nil
	}
	args, err := t.args(l.tenant, now)
	if err != nil {
		return out, err
	}
	rows, err := tx.Query(ctx, saveFindingsSQL, args...)
	if err != nil {
		return out, err
	}
	var fate, fingerprint string
	var f toldFinding
	_, err = pgx.ForEachRow(rows, []any{&fate, &fingerprint, &f.id, text(&f.kind)}, func() error {
		switch fate {
		case "opened":
			out.opened[fingerprint] = f
		case "changed":
			out.changed[fingerprint] = f
		case "ended":
			out.ended[fingerprint] = f
		}
		return nil
	})
	return out, err
}

// args encodes the tellings in the order of fingerprints, in which rows are locked.
func (t tellings) args(tenant string, now time.Time) ([]any, error) {
	findings := make([]findingRow, 0, len(t.findings))
	for fp, f := range t.findings {
		r, err := findingRowOf(f, fp)
		if err != nil {
			return nil, err
		}
		findings = append(findings, r)
	}
	slices.SortFunc(findings, func(a, b findingRow) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	ends, reasons := make([]string, 0, len(t.ends)), make([]string, 0, len(t.ends))
	for fp := range t.ends {
		ends = append(ends, fp)
	}
	slices.Sort(ends)
	for _, fp := range ends {
		reasons = append(reasons, t.ends[fp])
	}
	notices := make([]noticeRow, 0, len(t.notices))
	for _, n := range t.notices {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		notices = append(notices, noticeRow{
			ID: id.String(), Fingerprint: n.Finding, Operation: string(n.Operation), Step: n.Step,
			Destination: n.Destination, Reason: n.Reason, DueAt: stored(n.DueAt),
		})
	}
	findingsJSON, err := encode(findings)
	if err != nil {
		return nil, err
	}
	noticesJSON, err := encode(notices)
	return []any{tenant, stored(now), findingsJSON, ends, reasons, noticesJSON, stepFirst}, err
}
