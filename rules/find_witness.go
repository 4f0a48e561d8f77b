package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// witnessed begins the field of what a witness says, in the observed values of a finding.
const witnessed = "witness "

// contradiction is the finding that a business object of our own disagrees with the state that
// an operation comes to: the order is marked refunded and the refund failed, or the other way
// round, or for another amount. It changes no state and never closes anything: the object may
// be wrong, and so may be what was marked after it.
func (v *view) contradiction(to recon.State) []recon.Finding {
	t := v.c.Witness
	if !t.Heard() || !v.contradicts(t, to) {
		return nil
	}
	f := v.finding(recon.FindMismatch, fmt.Sprintf("The record says that the %s is %s, and the witness %s says of %s: %s.",
		v.what(), to.Text(), t.Witness, recon.Printable(t.Object), t.Look.Detail), nil)
	f.Observed = []recon.Difference{{Field: witnessed + t.Witness, Ours: string(to), Theirs: t.Look.Detail}}
	return []recon.Finding{f}
}

// contradicts reports whether what a witness says cannot be so if the operation is in a state.
func (v *view) contradicts(t *recon.Testimony, to recon.State) bool {
	says := t.Says
	if t.Look.Outcome == recon.Absent {
		says = recon.SaysNotDone // it knows no such object, or none for which anything was done
	}
	switch {
	case to == recon.Failed:
		// Sums may be of other operations.
		return says == recon.SaysDone && !t.Sums
	case to != recon.Succeeded:
		return false
	case says == recon.SaysDone && !v.agreesInMoney(t):
		return !t.Sums || v.settled(t)
	case says == recon.SaysNotDone:
		return v.settled(t)
	}
	return false
}

// agreesInMoney holds the amount that a witness shows against the operation's, where both are
// known. One that adds up must hold at least the operation's own.
func (v *view) agreesInMoney(t *recon.Testimony) bool {
	ours, theirs := v.c.Operation.Money, t.Money
	if ours.IsZero() || theirs.Currency == "" {
		return true
	}
	if ours.Currency != theirs.Currency {
		return false
	}
	less := ours.Minor - theirs.Minor
	return less <= v.c.Policy.Tolerance && (t.Sums || -less <= v.c.Policy.Tolerance)
}

// settled reports whether the object must have learned of the closing by now. Who marks an
// order refunded often learns from us that the refund was made.
func (v *view) settled(t *recon.Testimony) bool {
	op := &v.c.Operation
	if t.Lag == 0 {
		return true
	}
	return op.State == recon.Succeeded && !op.ClosedAt.IsZero() && !v.now.Before(op.ClosedAt.Add(t.Lag.Std()))
}

// isContradiction reports whether a finding is one of this rule.
func isContradiction(f recon.Finding) bool {
	return f.Kind == recon.FindMismatch && slices.ContainsFunc(f.Observed, func(d recon.Difference) bool { return strings.HasPrefix(d.Field, witnessed) })
}

// bearWitness adds what the witness said to a decision that tells anything: to its evidence,
// and as a sentence to its reason and to those of its findings.
func (v *view) bearWitness(d *recon.Decision) {
	t := v.c.Witness
	if t == nil || !d.Changes() {
		return
	}
	d.LookIDs = append(slices.Clone(d.LookIDs), t.Look.ID)
	slices.Sort(d.LookIDs)
	sentence := fmt.Sprintf(" The witness %s says of %s: %s.", t.Witness, recon.Printable(t.Object), t.Look.Detail)
	if !t.Heard() {
		sentence = fmt.Sprintf(" The witness %s could not be asked: %s.", t.Witness, recon.FaultText(t.Look.Fault))
	}
	d.Reason += sentence
	d.Findings = slices.Clone(d.Findings)
	for i, f := range d.Findings {
		if len(f.Operations) == 1 && !isContradiction(f) {
			d.Findings[i].Reason += sentence
		}
	}
}
