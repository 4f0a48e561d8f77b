package large

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	account     = "acct_large"
	shop        = "acct_shop" // connected to the other one, where a world has shops
	toldAccount = "acct_told" // of which the product is told by events alone
	giro        = "giro"      // the bank's only one
	mode        = "live"
	marker      = "operation_id"

	// Keys of the fake providers. The agents' may write, the product's only read.
	agentKey     = "sk_live_TESTONLYagent"
	productKey   = "rk_live_TESTONLYreader"
	toldAgentKey = "sk_live_TESTONLYtold"
	feedKey      = "rk_live_TESTONLYfeed" // reads events alone
	idleKey      = "rk_live_TESTONLYidle" // reads nothing
	bankToken    = "TESTONLY_bank"
	postToken    = "TESTONLY_post"
	hookSecret   = "whsec_TESTONLY"
	toldSecret   = "whsec_TESTONLYtold"
)

// providers are the three companies beyond the network.
type providers struct {
	cards *stripetest.Server
	bank  *httpapitest.Server
	post  *httpapitest.Postmark
}

// startProviders starts the three fakes, each on its own clock of the same time.
func (w *World) startProviders() error {
	n := w.plan.nature
	var err error
	w.at.cards, err = stripetest.Start(stripetest.Options{
		Now: w.cardsNow, Seed: w.plan.Seed, Lag: n.lag, PageCap: n.pageCap, Life: w.liveCard,
		Accounts: []stripetest.Account{
			{ID: account, Mode: mode, Key: agentKey, ReadKey: productKey}, {ID: shop, Mode: mode, Platform: account},
			{ID: account, Mode: "test", Key: "sk_test_TESTONLYagent"}, {ID: shop, Mode: "test", Platform: account},
			{ID: toldAccount, Mode: mode, Key: toldAgentKey, EventsKey: feedKey, IdleKey: idleKey},
		},
	})
	if err != nil {
		return err
	}
	w.onEnd(w.at.cards.Close)
	w.at.bank = httpapitest.Start(w.clock.Now, "cursor", 50)
	w.onEnd(w.at.bank.Close)
	w.at.bank.SetLag(n.bankLag)
	w.at.post = httpapitest.StartPostmark(w.clock.Now)
	w.onEnd(w.at.post.Close)
	w.at.post.SetLag(n.postLag)
	return nil
}

// cardsNow is the card provider's clock, which is not ours.
func (w *World) cardsNow() time.Time { return w.cardsAt(w.clock.Now()) }

// openSources makes the product's view of the providers, with keys that only read.
func (w *World) openSources() error {
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	w.onEnd(transport.CloseIdleConnections)
	w.patience = map[recon.SourceName]*patience{}
	for _, name := range sourceNames {
		w.patience[name] = newPatience(perilous{transport, &w.doom})
	}
	w.at.bank.OnHang(w.patience[bank].giveUp)
	w.at.post.OnHang(w.patience[letters].giveUp)
	w.sources = map[recon.SourceName]sources.Source{}
	if err := w.openStripe(w.secrets); err != nil {
		return err
	}
	w.outage(told, epoch, w.over().Add(2*day))
	var err error
	w.sources[bank], err = httpapi.New(bank, w.bankSettings(), httpapi.Options{Transport: w.patience[bank], OnRequest: w.counts(bank)})
	if err != nil {
		return err
	}
	w.sources[letters], err = httpapi.NewPostmark(letters, httpapi.PostmarkSettings{
		Servers: []httpapi.PostmarkServer{{Account: "server-1", Token: recon.NewSecret(postToken)}},
		APIURL:  w.at.post.URL, Lag: recon.Duration(w.plan.nature.postLag), PerSecond: 1_000_000,
	}, httpapi.Options{Transport: w.patience[letters], OnRequest: w.counts(letters)})
	return err
}

// counts counts a source's requests.
func (w *World) counts(source recon.SourceName) func(string, string) {
	return func(string, string) { w.tally.calls(source) }
}

// openStripe makes the views of the card provider, or makes them anew as a process does that
// reads its configuration again: events may be signed with any of a source's secrets.
func (w *World) openStripe(secrets ...map[recon.SourceName]string) error {
	for name, settings := range map[recon.SourceName]stripe.Settings{cards: w.cardSettings(), told: w.toldSettings()} {
		for _, s := range of(name, secrets) {
			settings.Webhook.Secrets = append(settings.Webhook.Secrets, recon.NewSecret(s))
		}
		made, err := stripe.New(name, settings, stripe.Options{Transport: w.patience[name], OnRequest: w.counts(name)})
		if err != nil {
			return err
		}
		if w.sources[name] = made; name == cards {
			w.cards = made
		} else {
			w.told = made
		}
		if w.sweeps != nil {
			w.hire(name)
		}
	}
	return nil
}

// cardSettings are those of the company's account, and of its connected one.
func (w *World) cardSettings() stripe.Settings {
	s := stripe.Settings{
		System: "stripe", Account: account, Mode: mode, Marker: marker, APIURL: w.at.cards.URL(),
		APIKey: recon.NewSecret(productKey), PerSecond: 1_000_000, // no real time passes here
	}
	if w.plan.nature.shops {
		s.Account, s.Mode = "", ""
		s.Accounts = []stripe.AccountSettings{{Account: account, Mode: mode}, {Account: shop, Mode: mode, Connected: true}}
	}
	return s
}

// toldSettings are those of an account whose key opens no object: what no event told of it
// nobody can look for, and every look is blind for as long as the world lasts.
func (w *World) toldSettings() stripe.Settings {
	s := stripe.Settings{
		System: "stripe", Account: toldAccount, Mode: mode, Marker: marker, APIURL: w.at.cards.URL(), APIKey: recon.NewSecret(idleKey), PerSecond: 1_000_000,
	}
	if w.plan.nature.feed {
		s.APIKey = recon.NewSecret(feedKey)
	}
	return s
}

// bankSettings describe an API that keeps no keys and can only be listed.
func (w *World) bankSettings() httpapi.Settings {
	return httpapi.Settings{
		Account: giro, Mode: mode, APIURL: w.at.bank.URL + "/v1", Marker: marker, PerSecond: 1_000_000,
		Auth: httpapi.AuthSettings{Token: recon.NewSecret(bankToken)},
		Effects: []httpapi.EffectSettings{{
			Kind: "payout", Unit: "major",
			Fields: httpapi.FieldSettings{
				ID: "id", CreatedAt: "created", Status: "state", Amount: "total.value", Currency: "total.currency", Parent: "order", Reference: "meta.{marker}",
			},
			Statuses: map[string]string{"done": "completed", "undone": "reversed", "open": "in_flight"},
			List: httpapi.LookupSettings{
				Path: "/effects", Items: "data", Consistency: "strong", Lag: recon.Duration(max(w.plan.nature.bankLag, time.Second)), Order: "newest",
				Since: httpapi.BoundSettings{Param: "since", Format: "unix"}, Until: httpapi.BoundSettings{Param: "until", Format: "unix"},
			},
			Paging: httpapi.PagingSettings{Style: "cursor", SizeParam: "limit", Param: "after", Next: "page.next"},
		}},
	}
}

// liveCard decides what becomes of a refund, and writes it into the book.
func (w *World) liveCard(r stripetest.Refund) stripetest.Life {
	op := recon.OperationID(strings.TrimSpace(r.Metadata[marker]))
	i := w.intents[op]
	at := r.Created.Add(-w.plan.nature.skew)
	d := &deed{op: op, source: sourceAt(r.Account), account: r.Account, id: r.ID, minor: r.Amount, parent: r.Charge, at: at, turns: i.fate.life.turns(at, i.n)}
	w.book.write(d)
	var life stripetest.Life
	for _, t := range d.turns {
		life = append(life, stripetest.Turn{After: t.at.Sub(at), Status: wordOf(t), Reason: reasonOf(t.status)})
	}
	if len(life) > 0 && life[0].After > 0 {
		life = append(stripetest.Life{{Status: "succeeded"}}, life...)
	}
	return life
}

// sourceAt is the source that sees an account of the card provider.
func sourceAt(account string) recon.SourceName {
	if account == toldAccount {
		return told
	}
	return cards
}

// wordOf is what the card provider calls a turn.
func wordOf(t turn) string {
	return cmp.Or(t.word, map[recon.EffectStatus]string{recon.InFlight: "pending", recon.Completed: "succeeded", recon.EffectFailed: "failed"}[t.status])
}

func reasonOf(s recon.EffectStatus) string {
	if s == recon.EffectFailed {
		return "expired_or_canceled_card"
	}
	return ""
}

// pay makes a payout at the bank. What becomes of it later is on the agenda.
func (w *World) pay(op recon.OperationID, i intent, minor int64) string {
	id := w.at.bank.Make(httpapitest.Object{
		Token: bankToken, Reference: string(op), Parent: i.parent, Currency: i.money.Currency, Amount: fmt.Sprintf("%d.%02d", minor/100, minor%100),
	})
	d := &deed{op: op, source: bank, id: id, minor: minor, parent: i.parent, at: w.clock.Now()}
	if op != "" && !i.fate.again {
		d.turns = i.fate.life.turns(d.at, i.n)
	}
	for _, t := range d.turns {
		w.agenda.Plan(t.at, func() error { w.at.bank.SetState(id, "undone"); return nil })
	}
	w.book.write(d)
	return id
}

// write sends a letter. One that fails later bounces.
func (w *World) write(i intent) string {
	id := w.at.post.Send(httpapitest.Letter{
		Server: postToken, Stream: "outbound", To: []string{fmt.Sprintf("customer-%d@example.com", i.n)}, Subject: "Your order",
		Metadata: map[string]string{marker: string(i.id)},
	})
	d := &deed{op: i.id, source: letters, id: id, at: w.clock.Now(), turns: i.fate.life.turns(w.clock.Now(), i.n)}
	for _, t := range d.turns {
		w.agenda.Plan(t.at, func() error { w.at.post.Log(id, "Bounced"); return nil })
	}
	w.book.write(d)
	return id
}

// byHand makes an effect that no agent of ours made: with an operation's reference, as
// somebody does who repeats it in the provider's dashboard, or without.
func (w *World) byHand(i intent, op recon.OperationID) error {
	if i.source == bank {
		w.pay(op, i, i.money.Minor)
		w.book.deeds[len(w.book.deeds)-1].hand = true
		return nil
	}
	r := stripetest.Refund{Account: i.account, Mode: mode, Charge: i.parent, Amount: i.money.Minor}
	if op != "" {
		r.Metadata = map[string]string{marker: string(op)}
	}
	made, err := w.at.cards.AddRefund(r)
	if err == nil {
		w.book.write(&deed{op: op, source: i.source, account: made.Account, id: made.ID, minor: made.Amount, parent: i.parent, at: w.clock.Now(), hand: true})
	}
	return err
}

// rehearse makes the refund in test mode, as somebody does who tries out what went wrong. It
// is in no book: in live mode nothing exists.
func (w *World) rehearse(i intent) error {
	w.tally.fault("rehearsed in test mode")
	_, err := w.at.cards.AddRefund(stripetest.Refund{
		Account: i.account, Mode: "test", Charge: i.parent, Amount: i.money.Minor, Currency: lower(i.money.Currency), Metadata: map[string]string{marker: string(i.id)},
	})
	return err
}

// sendTo is the account that the agent really sends to.
func (w *World) sendTo(i intent) string {
	if i.fate.elsewhere && w.plan.nature.shops {
		w.tally.fault("sent to the other account")
		return map[string]string{account: shop, shop: account}[i.account]
	}
	return i.account
}

// dispute has the customer's bank take the charge's money back. Nothing can be refunded then,
// and what was refunded stays so.
func (w *World) dispute(i intent) error {
	w.tally.fault("charge disputed")
	_, err := w.at.cards.AddResource(stripetest.Resource{
		Kind: "dispute", Account: i.account, Mode: mode, Amount: i.money.Minor, Currency: lower(i.money.Currency), Fields: map[string]any{"charge": i.parent},
	})
	return err
}
