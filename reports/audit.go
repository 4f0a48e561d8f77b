package reports

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Audited is the window that was accounted for at one source.
type Audited struct {
	Source     recon.SourceName
	From, To   time.Time
	Operations int
	Effects    int
	Calls      int // requests to the provider
	DurationMS int64
}

// Fed is a range of a provider's feed of changes that was read.
type Fed struct {
	Source        recon.SourceName
	Account, Mode string
	From, To      time.Time
	Events, New   int
}

// Accounts are what the audits of one or several sources found.
type Accounts struct {
	Sources []Audited
	Feeds   []Fed
	Comparison
	Manner Manner
}

// Audit writes what the audits of one or several sources found: the window of each, then
// the totals of all, what was not seen, and each finding with both sides' values and why,
// dearest and oldest first.
func Audit(w io.Writer, a Accounts) error {
	p := newPage(a.Now, a.Zone)
	if a.Manner == DryRun {
		p.line("Dry run: nothing was changed. A real run would tell this:")
	}
	for _, s := range a.Sources {
		p.text("Audited ", fmt.Sprintf("%s, %s to %s: %s, %s (%s, %s)", s.Source, p.when(s.From), p.when(s.To),
			count(s.Operations, "operation"), count(s.Effects, "effect"), count(s.Calls, "request"), took(s.DurationMS)))
	}
	for _, f := range a.Feeds {
		told := count(f.Events, "event") + ", " + number(f.New) + " of which no delivery had brought"
		if f.Events == 0 {
			told = "NO EVENTS"
		}
		p.text("Events  ", fmt.Sprintf("%s, account %s, mode %s, %s to %s: %s", f.Source, f.Account, f.Mode, p.when(f.From), p.when(f.To), told))
	}
	if len(a.Sources) == 0 {
		p.line("No source was audited.")
		return p.writeTo(w)
	}
	p.outcome(a.Comparison)
	return p.writeTo(w)
}
