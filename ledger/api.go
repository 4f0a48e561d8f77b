package ledger

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// HoldSource takes the source for ttl, or says who has it (*HeldError). Only one
// holder at a time may write what was seen there.
func (l *Ledger) HoldSource(ctx context.Context, source recon.SourceName, holder string, ttl time.Duration) (Hold, error) {
	panic("ledger: being written")
}

// RenewSource prolongs a hold to ttl from now, or says that it was lost
// (*StaleHoldError).
func (l *Ledger) RenewSource(ctx context.Context, h Hold, ttl time.Duration) (Hold, error) {
	panic("ledger: being written")
}

// ReleaseSource gives the source back. A hold that was lost meanwhile is no error:
// there is nothing to give back.
func (l *Ledger) ReleaseSource(ctx context.Context, h Hold) error { panic("ledger: being written") }

// SourceState reads what is remembered of a source; zero for one never swept.
func (l *Ledger) SourceState(ctx context.Context, source recon.SourceName) (SourceState, error) {
	panic("ledger: being written")
}

// ExpireLeases sets operations that are in progress under a lease that is over to
// unknown, at most limit of them, earliest lease first, and says how many. The
// database's clock judges the lease; now is the time that the journal tells.
func (l *Ledger) ExpireLeases(ctx context.Context, source recon.SourceName, now time.Time, limit int) (int, error) {
	panic("ledger: being written")
}

// Due gives the operations whose next check is at or before now, earliest first, at
// most limit, each with its policy, plan, open findings and stored effects: its own,
// and those without owner that name it or have its parent, amount and currency.
// Sheet, Matches and Looks are left zero. The number of statements does not depend
// on limit.
func (l *Ledger) Due(ctx context.Context, s Scope, now time.Time, limit int) ([]recon.Case, error) {
	panic("ledger: being written")
}

// Cases gives the same for operations by id, due or not; unknown ids are left out.
func (l *Ledger) Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error) {
	panic("ledger: being written")
}

// Owners says which operation owns each of the effects. Effects without owner and
// effects not stored are left out.
func (l *Ledger) Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error) {
	panic("ledger: being written")
}

// Covered gives the ranges of a source that were listed completely since a time, as
// looks that can stand for new ones.
func (l *Ledger) Covered(ctx context.Context, source recon.SourceName, since time.Time) ([]recon.Coverage, error) {
	panic("ledger: being written")
}

// Record writes a batch in one transaction. An operation whose version is no longer
// the one of the decision is left alone and reported as lost. A stale hold
// (*StaleHoldError) writes nothing. The number of statements does not depend on the
// size of the batch.
//
// A batch that the database refuses for what it holds is written again one operation
// at a time, so that one bad row never stops the others; see [Recorded.SetAside].
func (l *Ledger) Record(ctx context.Context, b Batch) (Recorded, error) {
	panic("ledger: being written")
}

// SetAside counts a failure of one operation and plans its next try later each time.
// After five a finding names the fault. The fault is told to people: it holds no
// secret and no personal data. It returns the failures so far.
func (l *Ledger) SetAside(ctx context.Context, id recon.OperationID, now time.Time, fault string) (int, error) {
	panic("ledger: being written")
}

// BeginRun takes the place of a run. It fails with *RunningError while another run of
// the name is alive, and with *TickError when the tick was run before. A dead run,
// whose lease is over, is closed as abandoned first.
func (l *Ledger) BeginRun(ctx context.Context, s RunStart) (Run, error) {
	panic("ledger: being written")
}

// HeartbeatRun prolongs a run's lease to ttl from now (*AbandonedError when it was closed).
func (l *Ledger) HeartbeatRun(ctx context.Context, r Run, ttl time.Duration) (Run, error) {
	panic("ledger: being written")
}

// FinishRun closes a run (*AbandonedError when another process did so before).
func (l *Ledger) FinishRun(ctx context.Context, r Run, e RunEnd) error {
	panic("ledger: being written")
}

// LastRuns gives the newest runs of a name, newest first.
func (l *Ledger) LastRuns(ctx context.Context, name string, limit int) ([]Run, error) {
	panic("ledger: being written")
}

// Operations lists operations, newest first.
func (l *Ledger) Operations(ctx context.Context, f OperationFilter) ([]recon.Operation, error) {
	panic("ledger: being written")
}

// Story tells everything about one operation (*NotFoundError).
func (l *Ledger) Story(ctx context.Context, id recon.OperationID) (recon.Story, error) {
	panic("ledger: being written")
}

// Findings lists findings, newest first.
func (l *Ledger) Findings(ctx context.Context, f FindingFilter) ([]FindingRow, error) {
	panic("ledger: being written")
}

// Snapshot reads what the gauges show, in one transaction. now decides which notices
// are due; leases are judged by the database's clock.
func (l *Ledger) Snapshot(ctx context.Context, now time.Time) (Snapshot, error) {
	panic("ledger: being written")
}

// DueNotices gives notices whose time has come, that are not delivered and that
// nobody holds: first steps before all others, then by due time.
func (l *Ledger) DueNotices(ctx context.Context, now time.Time, limit int) ([]recon.Notice, error) {
	panic("ledger: being written")
}

// ClaimNotice takes the right to send one notice until a time; false when another
// has it or it is done.
func (l *Ledger) ClaimNotice(ctx context.Context, id string, now, until time.Time) (bool, error) {
	panic("ledger: being written")
}

// SettleNotice records how a try went and gives the claim back.
func (l *Ledger) SettleNotice(ctx context.Context, id string, d recon.Delivery, now time.Time) error {
	panic("ledger: being written")
}
