package rules

import (
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Class is where an audit counts an operation or an effect. Each is in exactly one, so
// the sums equal the totals.
type Class string

const (
	ClassUnseen     Class = "unseen"     // part of the place where its effect could be was not seen, or nobody looked for the one that it knows
	ClassMismatch   Class = "mismatch"   // live effects, none equal
	ClassDuplicate  Class = "duplicate"  // two or more live, one equal
	ClassReversed   Class = "reversed"   // done, and nothing of it is left
	ClassConflict   Class = "conflict"   // was failed, and an equal effect lives
	ClassMatched    Class = "matched"    // an equal completed effect
	ClassInFlight   Class = "in_flight"  // an equal effect in flight
	ClassFailed     Class = "failed"     // nothing happened, and both sides agree or can agree
	ClassMissing    Class = "missing"    // should have an effect, and a complete place has none
	ClassNeverSent  Class = "never_sent" // pending for too long, and nothing was sent
	ClassUnresolved Class = "unresolved" // unknown for too long
	ClassNotYet     Class = "not_yet"    // young, or what it knows is still to be looked for
	ClassOrphan     Class = "orphan"     // an effect that no operation explains
	ClassExplained  Class = "explained"  // follows from another effect
	ClassNotOurs    Class = "not_ours"   // of an account, mode, creator or kind that is none of ours
)

// OperationClasses and EffectClasses list every class of each side, in the order in
// which people read them.
var (
	OperationClasses = []Class{
		ClassMatched, ClassInFlight, ClassMissing, ClassDuplicate, ClassMismatch, ClassReversed,
		ClassConflict, ClassNeverSent, ClassUnresolved, ClassNotYet, ClassUnseen, ClassFailed,
	}
	EffectClasses = []Class{
		ClassMatched, ClassInFlight, ClassFailed, ClassOrphan, ClassDuplicate, ClassMismatch,
		ClassReversed, ClassConflict, ClassExplained, ClassNotOurs, ClassNotYet,
	}
)

// Place says whether the place where an operation's effect would be was seen whole.
type Place string

const (
	PlaceSeen   Place = "seen"
	PlaceUnseen Place = "unseen"
	// PlaceYoung was seen before everything that was sent could be seen in it.
	PlaceYoung Place = "young"
)

// Judged is what an audit says of one operation.
type Judged struct {
	Class Class
	// Kept is the effect that stands for the operation; zero where there is none.
	Kept     recon.EffectIdentity
	Findings []recon.Finding
	// Explained are effects that gave back what was done once too often.
	Explained []recon.EffectIdentity
	Reason    string
}

// Judge sorts one operation into its class, without deciding anything, and tells the
// findings that the class means. A comparison of two files uses it alone: one file is
// one look, so an old unknown without effect is unresolved there and not missing.
func Judge(c recon.Case, now time.Time, place Place) Judged {
	v := newView(c, now)
	j := Judged{Class: v.class(place), Explained: v.repaid}
	j.Findings = v.findingsOf(j.Class)
	if k := v.kept(); k != nil {
		j.Kept = k.effect.Identity()
	}
	if len(j.Findings) > 0 {
		j.Reason = j.Findings[0].Reason
	}
	return j
}

// keeping lists the classes that an operation keeps while a finding of that kind on it
// is open: a decision changes the state on which the class rested.
var keeping = []recon.FindingKind{
	recon.FindMismatch, recon.FindDuplicate, recon.FindReversed, recon.FindConflict, recon.FindMissing,
}

// class gives the first line that fits (design: Classes of an audit).
func (v *view) class(place Place) Class {
	s := v.state()
	for _, k := range keeping {
		if slices.ContainsFunc(v.c.Findings, func(f recon.Finding) bool {
			return f.Kind == k && f.Open() && f.Certainty != recon.Suspected && v.concerns(f)
		}) {
			return Class(k)
		}
	}
	switch {
	case len(v.linked) == 0:
		return v.classWithout(place)
	case v.unsought():
		return unsoughtClass(place)
	case len(v.live) > 0 && len(v.equal) == 0:
		return ClassMismatch
	case v.copies > 1:
		return ClassDuplicate
	case v.undone():
		return ClassReversed
	case s == recon.Failed && len(v.equal) > 0:
		return ClassConflict
	case len(v.done) > 0:
		return ClassMatched
	case len(v.equal) > 0:
		return ClassInFlight
	}
	return ClassFailed // failed effects only
}

// unsoughtClass classes an operation whose own effect nobody has looked for. What is seen of
// it says too little yet, here as in a decision.
func unsoughtClass(place Place) Class {
	if place == PlaceUnseen {
		return ClassUnseen
	}
	return ClassNotYet
}

// classWithout classes an operation without effects.
func (v *view) classWithout(place Place) Class {
	op := &v.c.Operation
	switch {
	case place == PlaceUnseen || op.Account == "":
		return ClassUnseen
	case op.State == recon.Failed:
		return ClassFailed
	case op.State == recon.Succeeded && place == PlaceYoung:
		return ClassNotYet
	case op.State == recon.Succeeded || v.absent():
		return ClassMissing
	case v.unsent():
		return ClassNeverSent
	case op.State == recon.Pending && op.SentAt.IsZero():
		return ClassNotYet
	case v.age() >= v.c.Policy.UnresolvedAfter.Std():
		return ClassUnresolved
	}
	return ClassNotYet
}

// findingsOf tells what the class means, in the same words as a decision.
func (v *view) findingsOf(class Class) []recon.Finding {
	switch class {
	case ClassMismatch:
		if len(v.live) > 0 && !v.unsought() { // else what is open of it is all that is known
			return []recon.Finding{v.mismatchFinding()}
		}
	case ClassDuplicate:
		return v.duplicates()
	case ClassReversed:
		if len(v.linked) > 0 {
			return []recon.Finding{v.reversedFinding()}
		}
	case ClassConflict:
		if s, ok := conflict.judge(v); ok {
			return s.findings
		}
	case ClassMissing:
		return []recon.Finding{v.missingFinding()}
	case ClassNeverSent:
		return []recon.Finding{v.neverSentFinding()}
	case ClassUnresolved:
		return []recon.Finding{v.unresolvedFinding()}
	case ClassInFlight:
		if f, late := v.lateFinding(); late {
			return []recon.Finding{f}
		}
	}
	return nil
}

// duplicates tells of several live effects, and of the record that said failed.
func (v *view) duplicates() []recon.Finding {
	if s, ok := conflict.judge(v); ok {
		return s.findings
	}
	if v.copies < 2 || len(v.equal) == 0 {
		return nil
	}
	return []recon.Finding{v.duplicateFinding(v.kept())}
}

// LinkedClass classes an effect that belongs to an operation: the operation's class,
// but failed for a failed one unless all of it was reversed, and of a duplicate the
// kept one is matched. That of an unseen one was seen, and what it is comes out later.
func LinkedClass(j Judged, e recon.Effect) Class {
	switch {
	case e.Status == recon.EffectFailed && j.Class != ClassReversed:
		return ClassFailed
	case j.Class == ClassDuplicate && e.Identity() == j.Kept:
		return ClassMatched
	case j.Class == ClassUnseen:
		return ClassNotYet
	}
	return j.Class
}

// Ownership says why an effect without operation may not be an orphan.
type Ownership string

const (
	Ours      Ownership = "ours"
	NotOurs   Ownership = "not_ours"
	Explained Ownership = "explained" // it follows from a known effect
)

// UnlinkedClass classes an effect that belongs to no operation. Grace is how long it
// may wait for one.
func UnlinkedClass(e recon.Effect, o Ownership, grace time.Duration, now time.Time) Class {
	switch {
	case o == Explained:
		return ClassExplained
	case o == NotOurs:
		return ClassNotOurs
	case e.Status == recon.EffectFailed:
		return ClassFailed
	case now.Sub(e.CreatedAt) < grace:
		return ClassNotYet
	}
	return ClassOrphan
}
