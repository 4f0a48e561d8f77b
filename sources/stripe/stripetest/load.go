package stripetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Load seeds the refunds among effects, as of their own times; effects of other kinds
// are passed over, and one that is repeated with the same charge and amount is one
// refund. reference goes into metadata under marker. A reversed refund succeeded first
// and failed at UpdatedAt, or a day later where that is unknown, but never in the
// future. It gives the number of refunds that were seeded.
func (s *Server) Load(effects []recon.Effect, marker string) (int, error) {
	loaded := 0
	for _, e := range effects {
		if e.Kind != "refund" {
			continue
		}
		r, err := refundOf(e, marker)
		if err != nil {
			return loaded, err
		}
		var later []Turn
		if e.Status == recon.Reversed {
			later = []Turn{{After: s.undoneAfter(e), Status: "failed", Reason: e.FailureReason}}
		}
		if s.holds(r) {
			continue
		}
		if _, err := s.AddRefund(r, later...); err != nil {
			return loaded, err
		}
		loaded++
	}
	return loaded, nil
}

// refundOf gives a refund as it was when it was made.
func refundOf(e recon.Effect, marker string) (Refund, error) {
	r := Refund{ID: e.ID, Account: e.Account, Mode: e.Mode, Charge: e.Parent, Amount: e.Money.Minor,
		Currency: e.Money.Currency, Created: e.CreatedAt, Key: e.Key, Metadata: map[string]string{}}
	if len(e.Metadata) > 0 {
		if err := json.Unmarshal(e.Metadata, &r.Metadata); err != nil {
			return Refund{}, fmt.Errorf("stripetest: load refund %s: metadata must be texts by name: %w", e.ID, err)
		}
	}
	if e.Reference != "" {
		r.Metadata[marker] = e.Reference
	}
	switch e.Status {
	case recon.InFlight:
		r.Status = "pending"
	case recon.Completed, recon.Reversed:
		r.Status = "succeeded"
	case recon.EffectFailed:
		r.Status, r.FailureReason = "failed", e.FailureReason
	default:
		return Refund{}, fmt.Errorf("stripetest: load refund %s: status %q is none that an effect can have", e.ID, e.Status)
	}
	return r, nil
}

// holds reports whether the same refund is there already.
func (s *Server) holds(r Refund) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[placeID{r.Account, r.Mode}]
	if p == nil {
		return false
	}
	held := p.refund(r.ID)
	return held != nil && held.Charge == r.Charge && held.Amount == r.Amount && strings.EqualFold(held.Currency, r.Currency)
}

// undoneAfter is the time from the creation of a reversed effect to its end, which is
// never in the future.
func (s *Server) undoneAfter(e recon.Effect) time.Duration {
	age := s.opt.Now().Sub(e.CreatedAt)
	if e.UpdatedAt.After(e.CreatedAt) {
		return min(age, e.UpdatedAt.Sub(e.CreatedAt))
	}
	return min(age, 24*time.Hour)
}
