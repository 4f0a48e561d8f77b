package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// defaultBatch is how many operations are read, asked for and recorded together: few
	// enough for a short transaction and a few megabytes, many enough that one list
	// serves them all.
	defaultBatch = 500
	// holdFor is how long a source stays taken without a sign of life. It is renewed
	// every third of it.
	holdFor = time.Minute
	// askAgain is how often a run asks for a source that another one holds.
	askAgain = 250 * time.Millisecond
	// endWithin bounds the giving back at the end of a run that was told to stop.
	endWithin = 10 * time.Second
	// defaultBlindAfter is the contract's default.
	defaultBlindAfter = 15 * time.Minute
	// defaultChanges is the contract's default for limits.changes_per_run.
	defaultChanges = 100_000
)

// Ledger is what a sweep asks of the ledger. [ledger.Ledger] is one, and [Dry] wraps
// one so that nothing is written.
type Ledger interface {
	Runs
	Holds
	Conclusions
	Readings
	ExpireLeases(ctx context.Context, source recon.SourceName, now time.Time, limit int) (int, error)
	Due(ctx context.Context, s ledger.Scope, now time.Time, limit int) ([]recon.Case, error)
	Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error)
	TakenBack(ctx context.Context, effects []recon.Effect) ([]recon.Effect, error)
	SetAside(ctx context.Context, id recon.OperationID, now time.Time, fault string) (int, error)
}

// Readings keeps what a sweep reads for its own sake.
type Readings interface {
	Readings(ctx context.Context, source recon.SourceName, now time.Time, limit int) ([]ledger.Reading, error)
	FinishReadings(ctx context.Context, r ledger.Read, now time.Time) error
}

// Runs keeps the list of runs, in which a name has one place.
type Runs interface {
	BeginRun(ctx context.Context, s ledger.RunStart) (ledger.Run, error)
	HeartbeatRun(ctx context.Context, r ledger.Run, ttl time.Duration) (ledger.Run, error)
	FinishRun(ctx context.Context, r ledger.Run, e ledger.RunEnd) error
}

// Holds keeps the right to write what was seen at a source.
type Holds interface {
	HoldSource(ctx context.Context, source recon.SourceName, holder string, ttl time.Duration) (ledger.Hold, error)
	RenewSource(ctx context.Context, h ledger.Hold, ttl time.Duration) (ledger.Hold, error)
	ReleaseSource(ctx context.Context, h ledger.Hold) error
	SourceState(ctx context.Context, source recon.SourceName) (ledger.SourceState, error)
}

var _ Ledger = (*ledger.Ledger)(nil)

// Sweep sweeps one source. Its fields are set once; it may then run again and again,
// one run at a time.
type Sweep struct {
	Ledger Ledger
	Source sources.Source
	// Witnesses are the sources that show business objects of our own, by the names that
	// actions give to them.
	Witnesses map[string]sources.Witness
	// Holder names this process to others: host and process id.
	Holder string
	// Changes is how many operations one run may set to failed, pending (released) or
	// manual_review; 0: 100,000.
	Changes int
	// BlindAfter is when a source that does not answer becomes a finding; 0: 15 min.
	BlindAfter time.Duration
	// Watch is told what happens, for metrics and screens. Its zero value is silent.
	Watch Watch
	Log   *slog.Logger // nil: the default one

	// What tests change: how many operations are a batch, how long a held source is waited
	// for, and who judges.
	batch  int
	wait   time.Duration
	decide func(recon.Case, time.Time) recon.Decision
	// after is called after each step of a run; an error ends the run there. For tests.
	after func(step string) error
}

// Watch is told what a run does. Every field may be nil.
type Watch struct {
	Look func(recon.Look)
	// Judged is told every operation of a batch after the batch was recorded.
	Judged func(recon.Case, recon.Decision)
	// Probed is told of every probe of a source that is down.
	Probed func(source recon.SourceName, err error)
}

// Options are those of one run.
type Options struct {
	// Now gives the time that decisions, ages and windows are judged by. Leases are
	// judged by the database alone.
	Now func() time.Time
	// Tick makes the run the only one of its time; empty: a manual run.
	Tick string
	// Limit is how many operations the run may take; 0: all that are due.
	Limit int
}

// Outcome is what one run did. Claimed is the sum of the eight after it.
type Outcome struct {
	RunID         string                    `json:"run_id"`
	Source        recon.SourceName          `json:"source"`
	Claimed       int                       `json:"claimed"`
	Succeeded     int                       `json:"succeeded"`
	Failed        int                       `json:"failed"`
	Released      int                       `json:"released"`
	ManualReview  int                       `json:"manual_review"`
	Kept          int                       `json:"kept"`
	Blind         int                       `json:"blind"`
	Lost          int                       `json:"lost"`
	SetAside      int                       `json:"set_aside"`
	ProviderCalls int                       `json:"provider_calls"`
	Findings      map[recon.FindingKind]int `json:"findings"`
	DurationMS    int64                     `json:"duration_ms"`
	// BlindReason says for people why operations could not be looked at.
	BlindReason string `json:"blind_reason,omitempty"`
}

// LimitError says that a run stopped before a batch that would have changed more
// operations than one run may. Nothing of that batch was written.
type LimitError struct {
	Source  recon.SourceName
	Limit   int
	Changed int // so far
	Next    int // what the next batch would have added
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: this run set %d operations to failed, pending or manual_review and the next batch would set %d more, above the limit of %d a run: "+
		"look at them with --dry-run; if they are right, raise limits.changes_per_run or run again", e.Source, e.Changed, e.Next, e.Limit)
}
