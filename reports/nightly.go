package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// NightlyFormat grows when a report tells the same things in another way.
const NightlyFormat = 1

// Nightly is the one truth of a report: what became of everything that was opened or
// made in a range of time. JSON is the document itself; text, CSV and HTML render it
// and know nothing else, so the same document gives the same bytes.
//
// Amounts are in minor units and never added across currencies. Absent amounts, fees and
// classes are null: not known is not 0.
type Nightly struct {
	Format int           `json:"format"`
	Window NightlyWindow `json:"window"`
	AsOf   time.Time     `json:"as_of"` // when the ledger was read
	Ended  bool          `json:"ended"` // the range was over then
	Totals NightlyTotals `json:"totals"`

	// Audits are those that accounted for the range, each with the window that it counted.
	Audits []NightlyAudit `json:"audits"`
	// Classes are the sum of the audits; null where there is none, or where windows of one
	// source overlap and a sum would count twice.
	Classes    *NightlyClasses `json:"classes"`
	NotAudited []NightlyGap    `json:"not_audited"` // parts of the range that no audit looked into
	Unseen     []NightlyGap    `json:"unseen"`      // parts that an audit could not see
	Failed     []NightlyGap    `json:"failed"`      // audits that failed after the last good one
	Down       []NightlyGap    `json:"down"`        // sources that could not be asked when the ledger was read

	Operations []OperationLine  `json:"operations"`
	Effects    []EffectLine     `json:"effects"`
	Fees       []FeeLine        `json:"fees"`
	Open       []OpenLine       `json:"open"` // operations opened before the end of the range that are open
	Truth      NightlyTruth     `json:"time_to_truth"`
	Findings   []NightlyFinding `json:"findings"` // of the range first, then what is open from before
	Policies   []NightlyPolicy  `json:"policies"`
	Chains     NightlyChains    `json:"chains"`
	Exponents  map[string]int   `json:"exponents"` // the providers' own decimals of currencies
	Stories    []StoryPage      `json:"stories"`   // of operations that findings name
}

// NightlyWindow is the range, half-open, as days of a zone or as it was asked for.
type NightlyWindow struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Zone  string    `json:"zone"`
	Name  string    `json:"name"` // 2026-03-01, or 2026-03-01 to 2026-03-31
	Hours float64   `json:"hours"`
}

// NightlyTotals were counted apart from the lines, which must come to the same.
type NightlyTotals struct {
	Operations int `json:"operations"`
	Effects    int `json:"effects"`
}

// NightlyAudit is one finished audit.
type NightlyAudit struct {
	RunID      string           `json:"run_id"`
	Source     recon.SourceName `json:"source"`
	From       time.Time        `json:"from"`
	To         time.Time        `json:"to"`
	FinishedAt time.Time        `json:"finished_at"`
	Operations int              `json:"operations"`
	Effects    int              `json:"effects"`
	Classes    NightlyClasses   `json:"classes"`
}

// NightlyClasses count each operation and each effect once.
type NightlyClasses struct {
	Operations map[string]int `json:"operations"`
	Effects    map[string]int `json:"effects"`
}

// NightlyGap is something that nobody could know, and why.
type NightlyGap struct {
	Source recon.SourceName `json:"source"`
	From   time.Time        `json:"from"`
	To     *time.Time       `json:"to"` // null: it lasts
	Why    string           `json:"why"`
}

// Sum is a number of things and, where they have a currency, the sum of their amounts.
type Sum struct {
	Count  int    `json:"count"`
	Amount *int64 `json:"amount"`
}

// OperationLine are the operations of one source, action and currency, by their state.
type OperationLine struct {
	Source   recon.SourceName    `json:"source"`
	Action   string              `json:"action"`
	Currency *string             `json:"currency"`
	All      Sum                 `json:"all"`
	States   map[recon.State]Sum `json:"states"`
}

// EffectLine are the effects of one source, kind and currency, by their status, and by
// whether an operation or a group explains them.
type EffectLine struct {
	Source   recon.SourceName           `json:"source"`
	Kind     string                     `json:"kind"`
	Currency *string                    `json:"currency"`
	All      Sum                        `json:"all"`
	Statuses map[recon.EffectStatus]Sum `json:"statuses"`
	Owned    Sum                        `json:"with_operation"`
	Unowned  Sum                        `json:"without_operation"`
}

// FeeLine is what effects cost that were done, in the currency that is settled. A fee that
// was given back is negative.
type FeeLine struct {
	Source   recon.SourceName `json:"source"`
	Kind     string           `json:"kind"`
	Currency string           `json:"currency"`
	Known    Sum              `json:"known"`
	NotKnown int              `json:"not_known"`
}

// OpenLine are open operations of one source, action and state by their age; the buckets
// are those of [AgeNames].
type OpenLine struct {
	Source  recon.SourceName `json:"source"`
	Action  string           `json:"action"`
	State   recon.State      `json:"state"`
	Count   int              `json:"count"`
	Buckets []int            `json:"buckets"`
}

// AgeNames are the buckets of ages, youngest first.
var AgeNames = []string{"under 15 min", "15 min to 1 h", "1 to 4 h", "4 to 24 h", "1 to 3 d", "3 to 7 d", "over 7 d"}

// NightlyTruth is how long operations were in doubt that were closed in the range.
type NightlyTruth struct {
	Closed   int      `json:"closed"`
	ByPeople int      `json:"by_people"`
	Median   *float64 `json:"median_seconds"` // null: none was closed
	P99      *float64 `json:"p99_seconds"`
	Longest  *float64 `json:"longest_seconds"`
}

// NightlyFinding is a finding with both sides.
type NightlyFinding struct {
	listedFinding
	InRange bool        `json:"in_range"` // it is about the range, or was opened in it; else it is open from before
	Ours    []OurSide   `json:"ours"`
	Theirs  []TheirSide `json:"theirs"`
}

// OurSide is an operation that a finding names.
type OurSide struct {
	ID        recon.OperationID `json:"id"`
	Action    string            `json:"action"`
	Target    string            `json:"target"`
	Parent    string            `json:"parent,omitempty"`
	Money     *money            `json:"money"`
	State     recon.State       `json:"state"`
	CreatedAt time.Time         `json:"created_at"`
}

// TheirSide is an effect that a finding names.
type TheirSide struct {
	recon.EffectRef
	Status    recon.EffectStatus `json:"status"`
	Parent    string             `json:"parent,omitempty"`
	Money     *money             `json:"money"`
	CreatedAt time.Time          `json:"made_at"`
}

// NightlyPolicy is a policy in force, and how many operations of the range were opened
// under it or an older version.
type NightlyPolicy struct {
	Action     string `json:"action"`
	Version    int    `json:"version"`
	Active     bool   `json:"active"`
	Operations int    `json:"operations"`
}

// NightlyChains is one hash over the heads of the chains that changed in the range.
type NightlyChains struct {
	Operations int    `json:"operations"`
	Digest     string `json:"digest"`
}

// Standing says what a report comes to, the gravest first.
type Standing string

// The standings of a report.
const (
	StandFindings   Standing = "findings"    // findings are open
	StandNotAudited Standing = "not_audited" // nobody looked into all of it
	StandUnseen     Standing = "unseen"      // somebody looked, and could not see all of it
	StandNotEnded   Standing = "not_ended"   // there is more to come
	StandAccounted  Standing = "accounted"   // all that was there is accounted for
)

// Standing says what the report comes to.
func (n *Nightly) Standing() Standing {
	switch {
	case n.openFindings() > 0:
		return StandFindings
	case len(n.Audits) == 0 || len(n.NotAudited) > 0:
		return StandNotAudited
	case len(n.Unseen) > 0:
		return StandUnseen
	case !n.Ended:
		return StandNotEnded
	}
	return StandAccounted
}

func (n *Nightly) openFindings() int {
	open := 0
	for _, f := range n.Findings {
		if f.open() {
			open++
		}
	}
	return open
}

func (f NightlyFinding) open() bool {
	return f.State != recon.FindingSettled && f.State != recon.FindingEnded
}

// NightlyJSON writes the document.
func NightlyJSON(w io.Writer, n *Nightly) error { return writeJSON(w, n) }

// ReadNightly reads a document that was kept.
func ReadNightly(text []byte) (*Nightly, error) {
	var n Nightly
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("the report that was kept cannot be read: %w", err)
	}
	if n.Format != NightlyFormat {
		return nil, fmt.Errorf("the report that was kept has format %d, this program writes %d", n.Format, NightlyFormat)
	}
	return &n, nil
}

// SumClasses adds the classes of audits; nil where there is none or where windows of one
// source overlap.
func SumClasses(audits []NightlyAudit) *NightlyClasses {
	sum := NightlyClasses{Operations: map[string]int{}, Effects: map[string]int{}}
	for i, a := range audits {
		for _, b := range audits[:i] {
			if a.Source == b.Source && a.From.Before(b.To) && b.From.Before(a.To) {
				return nil
			}
		}
		for k, n := range a.Classes.Operations {
			sum.Operations[k] += n
		}
		for k, n := range a.Classes.Effects {
			sum.Effects[k] += n
		}
	}
	if len(audits) == 0 {
		return nil
	}
	return &sum
}

// zone is that of the window; a document names only zones that were loaded.
func (n *Nightly) zone() *time.Location {
	zone, err := time.LoadLocation(n.Window.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}
