package sweep

import (
	"context"
	"io"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// CompareOptions says what to compare. Operations are JSON Lines (contracts: JSON) or a
// table whose header names the same fields, and effects JSON Lines unless a format says
// otherwise.
type CompareOptions struct {
	Operations, Effects io.Reader
	OperationsTable     bool
	// OperationsName and EffectsName are the files' names, for messages.
	OperationsName, EffectsName string
	// EffectsFormat is how the effects are written; nil: JSON Lines. Where its Source is
	// empty, the file is of the only source that the operations name.
	EffectsFormat *files.Format
	// Window is what is counted; pairs are made from everything read. A side that is
	// zero ends where the files end.
	Window recon.Window
	Now    time.Time
	Zone   *time.Location // nil: UTC; the window is told in it
	// Policies are those of a configuration, by action, with their sources' accounts.
	// An action without one has the default policy, and the kind of effect that it
	// makes is inferred from the files (see kindOf).
	Policies map[string]recon.Policy
}

// Compare sorts the operations and effects of two files into the classes of an audit
// and tells what is wrong, through the same matchers and rules as a sweep. It asks no
// source, needs no database and stores nothing.
//
// One file is one look: it proves that something is there, and a succeeded operation
// without effect is missing in it; an old unknown one is unresolved. A source that
// operations name and of which no effect was read is unseen, never missing.
//
// An error names the file, the line and what to do. A repeated operation id and two
// lines that contradict each other are refused with both line numbers.
func Compare(ctx context.Context, o CompareOptions) (CompareResult, error) {
	c, err := compare(ctx, o)
	if err != nil {
		return CompareResult{}, err
	}
	return c.result(), nil
}

func compare(ctx context.Context, o CompareOptions) (*comparison, error) {
	read, err := readBoth(ctx, o)
	if err != nil {
		return nil, err
	}
	c := newComparison(o, read)
	c.pair()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.judgeOperations()
	c.judgeEffects()
	c.findAcross()
	return c, nil
}

// CompareResult is what an audit or a comparison says (contracts: JSON, audit and
// compare). The sums of the classes equal the totals.
type CompareResult struct {
	Window     CompareWindow    `json:"window"`
	Operations int              `json:"operations"` // counted in the window
	Effects    int              `json:"effects"`
	Repeated   int              `json:"repeated"`            // lines that told of an effect again
	SetAside   int              `json:"set_aside,omitempty"` // rows of a file that are not ours: other kinds, totals
	Classes    CompareClasses   `json:"classes"`
	Findings   []CompareFinding `json:"findings"`
	Unseen     []CompareUnseen  `json:"unseen"`
	// Happened are operations of which the record does not know it, and that were done.
	Happened   []CompareHappened `json:"happened"`
	DurationMS int64             `json:"duration_ms"` // for the caller to fill, who has a clock
	Notes      []string          `json:"-"`           // what a person should know of the files
}

// CompareHappened is an operation that was open in the record, with the completed effect
// that stands for it.
type CompareHappened struct {
	Operation recon.OperationID `json:"operation_id"`
	State     recon.State       `json:"state"` // in the record
	EffectID  string            `json:"effect_id"`
	Money     recon.Money       `json:"-"`
	Target    string            `json:"-"`
}

// CompareWindow is the half-open range that was counted.
type CompareWindow struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Zone string    `json:"zone"`
}

// CompareClasses counts both sides by class; every class is there, also with 0.
type CompareClasses struct {
	Operations map[rules.Class]int `json:"operations"`
	Effects    map[rules.Class]int `json:"effects"`
}

// CompareFinding is one finding with both sides' values.
type CompareFinding struct {
	ID         string              `json:"id,omitempty"` // only of stored findings
	Kind       recon.FindingKind   `json:"kind"`
	Certainty  recon.Certainty     `json:"certainty"`
	Operations []recon.OperationID `json:"operation_ids"`
	EffectIDs  []string            `json:"effect_ids"`
	Effects    []recon.EffectRef   `json:"effects"`
	Observed   []recon.Difference  `json:"observed"`
	Reason     string              `json:"reason"`
	Money      recon.Money         `json:"-"` // at risk; for screens, which know the exponents
	Ours       []recon.Operation   `json:"-"` // both sides themselves, for screens
	Theirs     []recon.Effect      `json:"-"`
}

// CompareUnseen is a range of a source that nobody saw.
type CompareUnseen struct {
	Source recon.SourceName `json:"source"`
	From   time.Time        `json:"from"`
	To     time.Time        `json:"to"`
	Why    string           `json:"why"`
}
