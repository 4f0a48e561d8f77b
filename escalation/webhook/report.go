package webhook

import "github.com/seed-1c4f4dc2/reconciler/recon"

// Report is what a report of a day comes to. Its files have everything.
type Report struct {
	Day        string        `json:"day"`
	Zone       string        `json:"zone"`
	Verdict    string        `json:"verdict"` // in words
	Operations int           `json:"operations"`
	Effects    int           `json:"effects"`
	Findings   []ReportKind  `json:"findings"`
	Money      []ReportMoney `json:"money"`
	Gaps       []string      `json:"gaps"`      // what was not audited or not seen, in words
	MoreGaps   int           `json:"more_gaps"` // how many more there are
	Page       string        `json:"page"`      // a path on the machine that wrote it; empty: it could not be written
}

// ReportKind counts findings of a kind.
type ReportKind struct {
	Kind recon.FindingKind `json:"kind"`
	Open int               `json:"open"`
	Over int               `json:"over"`
}

// ReportMoney are the operations in one currency, in minor units.
type ReportMoney struct {
	Currency   string `json:"currency"`
	Count      int    `json:"count"`
	Amount     int64  `json:"amount"`
	DoneCount  int    `json:"done_count"`
	DoneAmount int64  `json:"done_amount"`
}

func report(d recon.DayReport) *Report {
	out := &Report{
		Day: d.Day, Zone: d.Zone, Verdict: d.Verdict, Operations: d.Operations, Effects: d.Effects, Gaps: append([]string{}, d.Gaps...),
		MoreGaps: d.MoreGaps, Page: d.Page, Findings: make([]ReportKind, 0, len(d.Findings)), Money: make([]ReportMoney, 0, len(d.Money)),
	}
	for _, k := range d.Findings {
		out.Findings = append(out.Findings, ReportKind(k))
	}
	for _, m := range d.Money {
		out.Money = append(out.Money, ReportMoney{m.Currency, m.Count, m.Minor, m.DoneCount, m.DoneMinor})
	}
	return out
}
