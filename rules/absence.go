package rules

import (
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// countedLook gives the look of this pass whose silence counts as absent for the
// operation, the latest where there are several, nil where there is none. One a pass
// counts: absence is to be spread over time, not over methods.
//
// It asks only of looks. Whether an effect was linked, and what then follows, is for
// the rules.
func (v *view) countedLook() *recon.Look {
	var best *recon.Look
	for i := range v.c.Looks {
		l := &v.c.Looks[i]
		if !v.counts(l) {
			continue
		}
		if best == nil || l.At.After(best.At) || l.At.Equal(best.At) && l.ID > best.ID {
			best = l
		}
	}
	return best
}

// counts holds a look against all that absence demands.
func (v *view) counts(l *recon.Look) bool {
	ability, known := v.c.Sheet.Ability(l.Method)
	switch {
	case len(v.hints) > 0: // an effect that may be ours is there
		return false
	case l.Outcome == recon.Blind || !l.Complete:
		return false
	case !known || ability.Consistency != recon.Strong:
		return false
	case !l.Covers(v.c.Operation, v.c.Policy.Effect):
		return false
	case !v.covered(l, ability):
		return false
	case !v.findable(l, ability):
		return false
	}
	// A look for one thing that was found and is not ours says nothing clear. A list
	// finds others' effects all the time; what a reference or key finds is all ours or not.
	switch {
	case l.Outcome == recon.Absent:
		return true
	case l.EffectID != "":
		return false
	}
	return l.Key == "" && l.Reference == "" || v.allLinked(l.Found)
}

// allLinked reports whether effects are all the operation's.
func (v *view) allLinked(found []recon.EffectIdentity) bool {
	for _, id := range found {
		if !slices.ContainsFunc(v.linked, func(p pair) bool { return p.effect.Identity() == id }) {
			return false
		}
	}
	return true
}

// covered asks whether the look saw the whole time in which an effect can have come
// to be, and was made when anything sent had become visible.
func (v *view) covered(l *recon.Look, a recon.Ability) bool {
	op := &v.c.Operation
	first, last := op.FirstPossible(), v.lastPossible()
	if !l.At.After(last.Add(a.Lag.Std())) {
		return false
	}
	if a.History > 0 && first.Before(l.At.Add(-a.History.Std())) {
		return false
	}
	if l.Window.IsZero() {
		return true
	}
	// To the moment of the question, or at least past everything that can still have
	// been made by then on a clock that differs from ours. Providers count in whole
	// seconds.
	end := l.At.Truncate(time.Second)
	if past := last.Add(recon.ClockSkew); past.Before(end) {
		end = past
	}
	return !l.Window.From.After(first) && !l.Window.To.Before(end)
}

// Span is the time in which an effect of an operation can have come to be: from its first
// attempt, less what clocks may differ, to the last moment at which a request can still
// have been working.
func Span(c recon.Case) (first, last time.Time) {
	v := view{c: c}
	return c.Operation.FirstPossible(), v.lastPossible()
}

// lastPossible is the latest moment at which a request of ours can still have been
// working: a process that was stopped may wake within its lease and send.
func (v *view) lastPossible() time.Time {
	op := &v.c.Operation
	end := op.LeaseUntil
	if end.IsZero() {
		// No lease is known: imported, or never claimed. As if one had begun then.
		end = op.CreatedAt
		if op.SentAt.After(end) {
			end = op.SentAt
		}
		end = end.Add(v.c.Policy.LeaseMax.Std())
	}
	return end.Add(v.c.Sheet.InFlightMax.Std())
}

// findable asks whether the effect would have been recognised: what the look searches
// for must really have been sent.
func (v *view) findable(l *recon.Look, a recon.Ability) bool {
	op := &v.c.Operation
	sent := func(m recon.Mark) bool { return slices.Contains(op.Marks, m) }
	switch {
	case l.EffectID != "": // covers has shown that it is the operation's own
		return true
	case l.Key != "" && !sent(recon.MarkKey), l.Reference != "" && !sent(recon.MarkReference):
		return false
	case op.EffectID != "": // a list shows ids
		return true
	case len(a.NeedsMark) > 0:
		return slices.ContainsFunc(a.NeedsMark, sent)
	}
	return len(op.Marks) > 0
}

// nextAbsence counts the look of this pass. The count begins anew where the operation
// was sent again since: what was not there before says nothing of the new attempt.
func (v *view) nextAbsence() recon.Absence {
	a := v.c.Check.Absence
	if len(v.linked) > 0 || a.Looks > 0 && !a.First.After(v.lastPossible()) {
		a = recon.Absence{}
	}
	l := v.counted
	if len(v.linked) > 0 || v.state() != recon.Unknown || l == nil || slices.Contains(a.LookIDs, l.ID) {
		return a
	}
	if a.Looks > 0 && !l.At.After(a.Last) {
		return a // standing coverage that was counted under another name
	}
	if a.Looks == 0 {
		a.First = l.At
	}
	a.Last = l.At
	a.Looks++
	a.LookIDs = append(slices.Clone(a.LookIDs), l.ID)
	return a
}

// absent reports whether the operation is absent: enough looks that count, spread
// over enough time, the latest of them in this pass.
func (v *view) absent() bool {
	p := v.c.Policy.Absence
	return v.state() == recon.Unknown && len(v.linked) == 0 && v.counted != nil &&
		v.absence.Looks >= max(p.Looks, 1) && v.absence.Last.Sub(v.absence.First) >= p.Over.Std()
}

// refusesRelease says why an absent operation may not be sent again under its key,
// empty where it may.
func (v *view) refusesRelease() string {
	op, p := &v.c.Operation, &v.c.Policy
	switch {
	case p.OnAbsent != recon.AbsentRelease:
		return "the policy puts absent operations before a person"
	case v.keyLifetime() == 0 || op.Key == "":
		return "the source keeps no keys, so a repeat could do it twice"
	case !slices.Contains(op.Marks, recon.MarkKey):
		return "its key was not sent, so a repeat could do it twice"
	case p.Class == recon.Irreversible && p.Repeat != recon.RepeatSameKey:
		return "its class is irreversible and the policy allows no repeat"
	case op.Released:
		return "it was released before and nobody sent it"
	case op.LastClass == recon.ClassStoredError:
		return "the provider stored an error under its key, so a repeat brings nothing else"
	case p.PerOperation > 0 && op.Attempts >= p.PerOperation:
		return "it has used all its attempts"
	case !v.now.Add(p.LeaseMax.Std()).Before(v.keyExpires().Add(-p.KeyMargin.Std())):
		return "its key is about to expire or has expired"
	}
	return ""
}

// keyLifetime is how long the provider keeps the operation's key; 0: it keeps none.
func (v *view) keyLifetime() time.Duration {
	if v.c.Sheet.KeyLifetime == 0 {
		return 0
	}
	if v.c.Policy.KeyLifetime > 0 {
		return v.c.Policy.KeyLifetime.Std()
	}
	return v.c.Sheet.KeyLifetime.Std()
}

// keyExpires is when the provider may forget the key; zero where nothing was sent or
// no keys are kept.
func (v *view) keyExpires() time.Time {
	op := &v.c.Operation
	switch {
	case !op.KeyExpiresAt.IsZero():
		return op.KeyExpiresAt
	case op.SentAt.IsZero() || v.keyLifetime() == 0:
		return time.Time{}
	}
	return op.SentAt.Add(v.keyLifetime())
}
