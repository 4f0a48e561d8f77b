package large

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// knowledge is what the world noted down while it went on, for the judge.
type knowledge struct {
	doubt     map[recon.OperationID]time.Time   // when a sender first did not know what came of it
	bySender  map[recon.OperationID]recon.State // closed by a sender's definite answer
	succeeded map[recon.OperationID]bool        // was ever succeeded in the ledger
	person    map[recon.OperationID]recon.Verb  // how people settled it
	released  map[recon.OperationID]time.Time   // when people last let an agent send it once more
	adopted   map[recon.OperationID]string      // operations that people made for effects
	former    map[recon.OperationID]string      // the last effect of an operation from before
	inherited time.Time                         // when those were imported
	outages   map[recon.SourceName][]recon.Window
	narrow    bool                           // one of several accounts at the card provider did not answer for long
	blind     map[recon.SourceName]time.Time // since when every look was blind
	seenAt    map[recon.SourceName]time.Time // when a look last told something
	readAt    map[string]time.Time           // when the provider was last asked for an effect and showed it
	broke     map[recon.SourceName]time.Time // when an audit's list broke off after it had told some, and nothing was seen since
	blindFor  map[recon.SourceName]time.Duration
	brokeFor  map[recon.SourceName]time.Duration // the same, from where such a list broke off
	downFor   map[recon.SourceName]time.Duration // the same, within an outage
	events    int                                // taken in
	reported  int                                // days
	untold    map[recon.OperationID]bool         // operations of whose effects some event reached nobody
	planted   map[recon.FindingKind]int          // findings that the truth demands
	wrong     []string
	audit     map[recon.SourceName]sweep.AuditResult // the last one
}

func newKnowledge() knowledge {
	return knowledge{
		doubt: map[recon.OperationID]time.Time{}, bySender: map[recon.OperationID]recon.State{}, succeeded: map[recon.OperationID]bool{},
		person: map[recon.OperationID]recon.Verb{}, adopted: map[recon.OperationID]string{}, released: map[recon.OperationID]time.Time{},
		former: map[recon.OperationID]string{}, outages: map[recon.SourceName][]recon.Window{}, blind: map[recon.SourceName]time.Time{}, blindFor: map[recon.SourceName]time.Duration{},
		seenAt: map[recon.SourceName]time.Time{}, readAt: map[string]time.Time{}, downFor: map[recon.SourceName]time.Duration{},
		audit: map[recon.SourceName]sweep.AuditResult{}, broke: map[recon.SourceName]time.Time{}, brokeFor: map[recon.SourceName]time.Duration{},
	}
}

// fault notes down that the product did something wrong.
func (w *World) fault(check, format string, args ...any) {
	w.wrong = append(w.wrong, check+": "+fmt.Sprintf(format, args...))
}

// doubts notes down that the sender of an intent does not know what came of it.
func (w *World) doubts(i intent) {
	if _, already := w.doubt[i.id]; !already {
		w.doubt[i.id] = w.clock.Now()
	}
}

// closedBySender notes down a definite answer that a sender reported.
func (w *World) closedBySender(i intent, s recon.State) {
	w.bySender[i.id] = s
	w.succeeded[i.id] = w.succeeded[i.id] || s == recon.Succeeded
	w.closes(i.id, s, false)
}

// judged is told every conclusion. It holds closings against the truth of this moment, and
// plans the sweep that the next check asks for.
func (w *World) judged(c recon.Case, d recon.Decision) {
	op := c.Operation
	if d.From != d.To && !d.To.Open() {
		w.closes(op.ID, d.To, true)
	}
	if op.Source == told && (d.Release || d.From != d.To && d.To == recon.Failed && len(w.book.by(op.ID)) == 0) {
		w.fault(unasked, "%s (%s) became %s by the rule %s", op.ID, w.intents[op.ID].fate.name, d.To, d.Rule)
	}
	if d.To == recon.Succeeded {
		w.succeeded[op.ID] = true
	}
	if len(d.Findings)+len(d.Ends) > 0 || d.From != d.To {
		w.changed()
	}
	if d.To.Open() {
		w.expect(op.Source, d.Check.Next)
	}
}

// closes holds a closing against what truly exists now. What the product concludes by itself
// may only be wrong by what it cannot know yet.
func (w *World) closes(op recon.OperationID, to recon.State, concluded bool) {
	i, ours := w.intents[op]
	if !ours {
		return
	}
	now, done, live := w.clock.Now(), 0, 0
	for _, d := range w.book.by(op) {
		if d.live(now) {
			live++
		}
		if d.status(now) == recon.Completed {
			done++
		}
	}
	switch {
	case to == recon.Succeeded && done == 0 && !(concluded && w.cannotKnow(op)):
		w.fault(wrongClose, "%s (%s) was closed as succeeded at %s, and nothing completed exists", op, i.fate.name, now.Format(time.RFC3339))
	case to == recon.Failed && live > 0:
		w.fault(wrongClose, "%s (%s) was closed as failed at %s, and %d live effects exist", op, i.fate.name, now.Format(time.RFC3339), live)
	}
}

// looked is told every look at a source. From the blind ones the world knows how long a
// source could not be looked at.
func (w *World) looked(name recon.SourceName) func(recon.Look) {
	return func(l recon.Look) {
		if w.doom.dead.Load() {
			return // nobody heard of it
		}
		w.tally.look(l.Outcome)
		w.showed(l)
		if l.Fault == string(sources.Timeout) {
			w.tally.fault(timedOut(name))
		}
		now := w.clock.Now()
		if l.Outcome != recon.Blind {
			delete(w.blind, name)
			delete(w.broke, name)
			w.seenAt[name] = now
			return
		}
		w.retryAt(name)
		if w.seenAt[name].Equal(now) {
			// A list that broke off told of some. To a sweep that is one answer. An audit asks page by
			// page, and the last one told nothing: from there the product may count.
			if w.in == inAudit || w.in == inAuditAll {
				w.broke[name] = now
			}
			return
		}
		if _, already := w.blind[name]; !already {
			w.blind[name] = now
		}
		w.blindFor[name] = max(w.blindFor[name], now.Sub(w.blind[name]))
		if since, broke := w.broke[name]; broke {
			w.brokeFor[name] = max(w.brokeFor[name], now.Sub(since))
		}
		for _, o := range w.outages[name] {
			if o.Contains(now) { // then no other look of the same answer can have seen
				w.downFor[name] = max(w.downFor[name], now.Sub(lastOf(w.blind[name], o.From)))
			}
		}
	}
}

func lastOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// probed is told of every probe of a source that is down.
func (w *World) probed(name recon.SourceName, err error) {
	if w.doom.dead.Load() {
		return
	}
	if err == nil {
		delete(w.blind, name)
		delete(w.broke, name)
	}
	w.retryAt(name)
}

// outage notes down that a provider did not answer the product.
func (w *World) outage(name recon.SourceName, from, to time.Time) {
	w.outages[name] = append(w.outages[name], recon.Window{From: from, To: to})
}

// ended counts the events that were taken in; one that failed is the product's fault.
func (w *World) ended(e inbox.Ending) {
	w.events++
	if e.Err != nil {
		w.fault("event not taken in", "%s: %v", e.Of.Event.ID, e.Err)
	}
}

// audited holds an audit's sums against each other: every operation and every effect is in
// exactly one class.
func (w *World) audited(name recon.SourceName, out sweep.AuditResult) {
	w.audit[name] = out
	w.tally.audits++
	w.changed()
	for _, side := range []struct {
		what    string
		total   int
		classes map[rules.Class]int
	}{{"operations", out.Operations, out.Classes.Operations}, {"effects", out.Effects, out.Classes.Effects}} {
		sum := 0
		for _, n := range side.classes {
			sum += n
		}
		if sum != side.total {
			w.fault("totals add up", "audit of %s: %d %s, and %d in classes", name, side.total, side.what, sum)
		}
	}
}
