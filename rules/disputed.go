package rules

import "github.com/seed-1c4f4dc2/reconciler/recon"

// lostDispute is why an effect is reversed whose own record never says so.
const lostDispute = "lost_dispute"

// asItStands is an effect as it is after what was lost of it. A payment that a bank took
// back for good is still "succeeded" in the provider's own record of it; only the disputes
// under it tell.
func (v *view) asItStands(e recon.Effect) recon.Effect {
	if e.Status != recon.Completed || e.Money.IsZero() {
		return e
	}
	left := e.Money.Minor
	for _, d := range v.c.Effects {
		if d.Lost() && d.Under(e.ID) && d.System == e.System && d.Account == e.Account && d.Mode == e.Mode &&
			d.Money.Currency == e.Money.Currency {
			left -= d.Money.Minor
		}
	}
	if left <= 0 {
		e.Status, e.FailureReason = recon.Reversed, lostDispute
	}
	return e
}
