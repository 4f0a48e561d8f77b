package large

import (
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// posting is how the card provider posts its events, and what the product expects of them.
type posting struct {
	hooks   map[recon.SourceName][]*stripetest.Hook
	secrets map[recon.SourceName]string // with which the newest ones are signed
}

func newPosting() posting {
	return posting{
		hooks:   map[recon.SourceName][]*stripetest.Hook{},
		secrets: map[recon.SourceName]string{cards: hookSecret, told: toldSecret},
	}
}

// rollSecrets replaces the secrets of all endpoints, in the order of a handbook, or in one that
// has events refused until somebody notices.
func (w *World) rollSecrets(t trouble) error {
	old, now := w.secrets, w.clock.Now()
	w.secrets = map[recon.SourceName]string{cards: old[cards] + "next", told: old[told] + "next"}
	next := w.secrets
	sign := func(lists ...map[recon.SourceName]string) error {
		for name, hooks := range w.hooks {
			for _, h := range hooks {
				h.SetSecrets(of(name, lists)...)
			}
		}
		return nil
	}
	trust := func(lists ...map[recon.SourceName]string) error { return w.openStripe(lists...) }
	switch t.size % 3 {
	case 0:
		w.tally.fault("secrets rolled: both sign for a while")
		w.agenda.Plan(now.Add(t.long/2), func() error { return trust(next) })
		w.agenda.Plan(now.Add(t.long), func() error { return sign(next) })
		return sign(next, old)
	case 1:
		w.tally.fault("secrets rolled: both are trusted for a while")
		w.agenda.Plan(now.Add(t.long/2), func() error { return sign(next) })
		w.agenda.Plan(now.Add(t.long), func() error { return trust(next) })
		return trust(old, next)
	}
	w.tally.fault("secrets rolled: nobody told the product")
	w.agenda.Plan(now.Add(t.long), func() error { return trust(next) })
	return sign(next)
}

// of gives what lists have for a source.
func of(name recon.SourceName, lists []map[recon.SourceName]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l[name])
	}
	return all
}

// resend has somebody send events of the last days once more, by hand: what they tell was so.
func (w *World) resend(t trouble) error {
	sent := 0
	for n, e := range w.at.cards.Events() {
		if n%5 != t.size%5 || !strings.HasPrefix(e.Type, "refund.") || e.Mode != mode || e.Created.Before(epoch.Add(-time.Hour)) {
			continue
		}
		if err := w.at.cards.Resend(e.ID); err != nil {
			return err
		}
		if sent++; sent == 20 {
			break
		}
	}
	return nil
}
