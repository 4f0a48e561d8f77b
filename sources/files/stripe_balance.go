package files

import (
	"cmp"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// stripeExponents are the currencies whose minor unit at Stripe is not that of ISO 4217.
// They are those of the source of kind stripe; a test holds them together.
var stripeExponents = map[string]int{"ISK": 2, "MGA": 0, "UGX": 2}

// stripeBalance reads the itemized report of changes of a Stripe balance, and the other
// itemized reports with the same columns. Amounts are in major units and signed; times
// with _utc in their name are UTC, others are in the zone that the report was made for.
type stripeBalance struct {
	format  *Format
	utc     bool
	note    noter
	payouts *payouts // nil: the report does not say what was paid out together
}

// The columns of the report, by their place in balanceColumns.
const (
	balCategory = iota
	balSource
	balCurrency
	balGross
	balFee
	balNet
	balCreatedUTC
	balCreated
	balCharge
	balIntent
	balAccount
	balShownAmount
	balShownCurrency
	balRefundMark
	balPaymentMark
	balPayout
)

func newStripeBalance(f *Format) layout { return &stripeBalance{format: f} }

func (b *stripeBalance) columns() []column {
	one := func(name string) column { return column{names: []string{name}} }
	must := func(name string) column { return column{names: []string{name}, required: true} }
	marker := b.format.Marker
	return []column{
		must("reporting_category"), must("source_id"), must("currency"), must("gross"), one("fee"), one("net"),
		one("created_utc"), one("created"), one("charge_id"), one("payment_intent_id"), one("connected_account_id"),
		one("customer_facing_amount"), one("customer_facing_currency"),
		one("refund_metadata[" + marker + "]"), one("payment_metadata[" + marker + "]"),
		one("automatic_payout_id"),
	}
}

func (b *stripeBalance) begin(h header, note noter) error {
	b.utc, b.note = h.at[balCreatedUTC] >= 0, note
	if h.at[balPayout] >= 0 && h.at[balNet] >= 0 {
		b.payouts = newPayouts()
	}
	switch {
	case !b.utc && h.at[balCreated] < 0:
		return faultf(h.line, `the header names neither "created_utc" nor "created"; add created_utc to the report's columns`)
	case !b.utc && b.format.dates.zone == nil:
		return faultf(h.line, `"created" is in the zone that the report was made for: write it as `+"`zone`"+` in the source's settings, or add created_utc to the report's columns`)
	}
	if h.at[balRefundMark] < 0 && h.at[balPaymentMark] < 0 {
		note(h.line, "there is no column refund_metadata[%s], so no effect names its operation; add it to the report's columns", b.format.Marker)
	}
	return nil
}

func (b *stripeBalance) alone() bool { return true }

func (b *stripeBalance) end() error {
	if b.payouts != nil {
		b.payouts.tell(b.note)
	}
	return nil
}

// category is what rows of one reporting category tell of.
type category struct {
	kind   string
	status recon.EffectStatus
	back   bool // the money moves against the effect: gross has the other sign
	out    bool // the effect takes money out of the balance
	later  bool // its row tells what became of an effect, not when it began
}

// categories says what the API's objects come to, as far as their money shows it. A payout
// leaves the balance when it begins and nothing tells that it arrived; a dispute's money is
// taken when it begins, and given back when it is won.
var categories = map[string]category{
	"charge":           {kind: "charge", status: recon.Completed},
	"charge_failure":   {kind: "charge", status: recon.EffectFailed, back: true, later: true},
	"refund":           {kind: "refund", status: recon.Completed, out: true},
	"refund_failure":   {kind: "refund", status: recon.EffectFailed, out: true, back: true, later: true},
	"payout":           {kind: "payout", status: recon.InFlight, out: true},
	"payout_reversal":  {kind: "payout", status: recon.EffectFailed, out: true, back: true, later: true},
	"dispute":          {kind: "dispute", status: recon.InFlight, out: true},
	"dispute_reversal": {kind: "dispute", status: recon.Completed, out: true, back: true, later: true},
	"transfer":         {kind: "transfer", status: recon.Completed, out: true},
	"topup":            {kind: "topup", status: recon.Completed},
	"topup_reversal":   {kind: "topup", status: recon.EffectFailed, back: true, later: true},
}

// balanceKinds are the kinds of effects that a report tells of.
var balanceKinds = []string{"charge", "dispute", "payout", "refund", "topup", "transfer"}

func (b *stripeBalance) read(rec *record, row *Row) error {
	name := rec.get(balCategory)
	c, known := categories[name]
	if name == "" {
		return refuse("reporting_category is empty")
	}
	if b.payouts != nil {
		b.addToPayout(rec, name)
	}
	if !known {
		row.setAside("reporting category %s tells of no effect", shown(name))
		return nil
	}
	e := &row.Effect
	e.Source, e.System, e.Kind, e.Status = b.format.Source, b.format.System, c.kind, c.status
	if err := b.identity(rec, e); err != nil {
		return err
	}
	if !b.format.has(e.Account, e.Mode) {
		return nil // set aside, whatever else it says
	}
	at, err := b.created(rec)
	if err != nil {
		return err
	}
	if e.CreatedAt = at; c.later {
		e.UpdatedAt = at
	}
	if err := b.money(rec, c, e); err != nil {
		return err
	}
	return b.names(rec, e)
}

func (b *stripeBalance) identity(rec *record, e *recon.Effect) (err error) {
	if e.ID, err = text1("source_id", rec.get(balSource)); err != nil {
		return err
	}
	if e.ID == "" {
		return refuse("source_id is empty, so nobody knows which %s it is", recon.Noun(e.Kind))
	}
	account, err := text1("connected_account_id", rec.get(balAccount))
	if err != nil {
		return err
	}
	var known bool
	if e.Account, e.Mode, known = b.format.place(account, ""); !known {
		return refuse("the source has several accounts and the row does not say which; add connected_account_id to the report's columns")
	}
	return nil
}

func (b *stripeBalance) created(rec *record) (time.Time, error) {
	if b.utc {
		utc := b.format.dates
		utc.zone = time.UTC
		at, err := utc.instant(rec.get(balCreatedUTC), "")
		return at, named("created_utc", err)
	}
	at, err := b.format.dates.instant(rec.get(balCreated), "")
	return at, named("created", err)
}

// money reads the amounts of a row and holds them against each other: net is gross less
// fee, and the sign is that of the category.
func (b *stripeBalance) money(rec *record, c category, e *recon.Effect) error {
	gross, currency, err := b.cell(rec, balGross, balCurrency, "gross")
	if err != nil {
		return err
	}
	if gross == 0 {
		return refuse("gross is 0; nothing moved")
	}
	if out := c.out != c.back; out != (gross < 0) {
		return refuse("gross %s has the wrong sign for a %s", shown(rec.get(balGross)), shown(rec.get(balCategory)))
	}
	var fee, net *int64
	for _, side := range []struct {
		column int
		name   string
		to     **int64
	}{{balFee, "fee", &fee}, {balNet, "net", &net}} {
		if rec.get(side.column) == "" {
			continue
		}
		v, _, err := b.cell(rec, side.column, balCurrency, side.name)
		if err != nil {
			return err
		}
		*side.to = &v
	}
	if fee != nil && net != nil && *net != gross-*fee {
		return refuse("net %s is not gross %s less fee %s", shown(rec.get(balNet)), shown(rec.get(balGross)), shown(rec.get(balFee)))
	}
	e.Money = recon.Money{Minor: max(gross, -gross), Currency: currency}
	settled := e.Money
	if rec.get(balShownAmount) != "" && rec.get(balShownCurrency) != "" {
		shown, in, err := b.cell(rec, balShownAmount, balShownCurrency, "customer_facing_amount")
		if err != nil {
			return err
		}
		if shown != 0 {
			e.Money = recon.Money{Minor: max(shown, -shown), Currency: in}
		}
	}
	if !c.later { // a later row moves the money back; fee and net are those of the first
		e.Fee, e.Net, e.Settlement = fee, net, settled
	}
	return nil
}

func (b *stripeBalance) cell(rec *record, amount, currency int, name string) (int64, string, error) {
	in, err := b.format.money(rec.get(currency))
	if err != nil {
		return 0, "", refuse("currency: %v", err)
	}
	v, err := b.format.amount(rec.get(amount), in)
	return v, in.code, named(name, err)
}

// names fills in what the effect hangs under and what of ours it bears.
func (b *stripeBalance) names(rec *record, e *recon.Effect) error {
	charge, err := text1("charge_id", rec.get(balCharge))
	if err != nil {
		return err
	}
	intent, err := text1("payment_intent_id", rec.get(balIntent))
	if err != nil {
		return err
	}
	mark := rec.get(balRefundMark)
	switch e.Kind {
	case "refund", "dispute":
		if e.Parent = cmp.Or(charge, intent); charge != "" && intent != "" {
			e.OtherParents = []string{intent}
		}
	case "charge":
		e.Parent, mark = intent, rec.get(balPaymentMark)
	default:
		mark = ""
	}
	if e.Kind == "dispute" {
		mark = "" // a dispute is nobody's operation; the payment's mark is not its own
	}
	e.Reference, err = text1("refund_metadata", mark)
	return err
}
