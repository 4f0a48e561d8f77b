package ledger

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// HeldError says that another process holds the source.
type HeldError struct {
	Source recon.SourceName
	By     string
	Since  time.Time
	Until  time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("source %s is being swept by %s since %s; its hold ends at %s unless renewed: wait, or stop that process",
		e.Source, e.By, e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
}

// StaleHoldError says that the hold is no longer ours. Nothing was written.
type StaleHoldError struct {
	Source recon.SourceName
	Holder string
}

func (e *StaleHoldError) Error() string {
	return fmt.Sprintf("source %s: %s no longer holds it, so nothing was written; another process sweeps it now", e.Source, e.Holder)
}

// RunningError says that a run of this name is under way.
type RunningError struct {
	Name  string
	By    string
	Since time.Time
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("%s already running since %s, by %s: wait until it has finished",
		e.Name, e.Since.UTC().Format(time.RFC3339), e.By)
}

// TickError says that this tick was run before, by whom and when.
type TickError struct {
	Name string
	Tick string
	By   string
	At   time.Time
}

func (e *TickError) Error() string {
	return fmt.Sprintf("%s at %s was already run, by %s at %s", e.Name, e.Tick, e.By, e.At.UTC().Format(time.RFC3339))
}

// AbandonedError says that a run was taken for dead and closed by another process.
type AbandonedError struct {
	Name string
	ID   string
}

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("run %s of %s was closed as abandoned: its heartbeat was late; stop it and start a new one", e.ID, e.Name)
}

// NotFoundError says that there is no such thing.
type NotFoundError struct {
	What string // "operation"
	ID   string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no %s %s in this ledger", e.What, e.ID)
}

// UsageError says that the call itself is wrong: an option, a URL, an argument.
// Trying again changes nothing.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }
