package ledger

import (
	"cmp"
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

// tellings is what a batch says to people: findings, and ends of findings. Whom to tell
// is planned from the stored findings, whoever wrote them.
type tellings struct {
	findings map[string]recon.Finding // by fingerprint
	ends     map[string]string        // fingerprint to reason
}

// tellings collects what the surviving decisions and the batch itself say.
func (p *plan) tellings(b *Batch) tellings {
	t := tellings{findings: map[string]recon.Finding{}, ends: map[string]string{}}
	for _, c := range p.conclusions {
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
	for f := range t.findings {
		delete(t.ends, f) // what one decision still sees has not ended
	}
	return t
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

// saveFindings writes findings by their fingerprint and ends others, in one statement.
// The version of each that changed asks for the planning of its notices.
func (l *Ledger) saveFindings(with *pgx.Batch, t tellings, now time.Time) (told, error) {
	out := told{opened: map[string]toldFinding{}, changed: map[string]toldFinding{}, ended: map[string]toldFinding{}}
	if len(t.findings) == 0 && len(t.ends) == 0 {
		return out, nil
	}
	args, err := t.args(l.tenant, now)
	if err != nil {
		return out, err
	}
	var fate, fingerprint string
	var f toldFinding
	with.Queue(saveFindingsSQL, args...).Query(eachRow([]any{&fate, &fingerprint, &f.id, text(&f.kind)}, func() error {
		switch fate {
		case "opened":
			out.opened[fingerprint] = f
		case "changed":
			out.changed[fingerprint] = f
		case "ended":
			out.ended[fingerprint] = f
		}
		return nil
	}))
	return out, nil
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
	findingsJSON, err := encode(findings)
	return []any{tenant, stored(now), findingsJSON, ends, reasons}, err
}
