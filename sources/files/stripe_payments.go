package files

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// stripePayments reads the payments list of Stripe's dashboard, in both of its known
// headings. A refund is a column here and not a row: the list says how much of a payment
// was given back, and can neither confirm nor clear one refund.
type stripePayments struct {
	format   *Format
	note     noter
	refunded map[string]int64 // by currency, of payments that are ours
	payments int              // with refunds
}

const (
	payID = iota
	payCreated
	payAmount
	payCurrency
	payStatus
	payMode
	payRefunded
	payFee
	paySettled
	paySettledCurrency
	payIntent
	payMark
	payCaptured
)

func newStripePayments(f *Format) layout {
	return &stripePayments{format: f, refunded: map[string]int64{}}
}

func (p *stripePayments) columns() []column {
	return []column{
		{names: []string{"id"}, required: true},
		{names: []string{"Created date (UTC)", "Created (UTC)"}, required: true},
		{names: []string{"Amount"}, required: true},
		{names: []string{"Currency"}, required: true},
		{names: []string{"Status"}, required: true},
		{names: []string{"Mode"}},
		{names: []string{"Amount Refunded"}},
		{names: []string{"Fee"}},
		{names: []string{"Converted Amount"}},
		{names: []string{"Converted Currency"}},
		{names: []string{"PaymentIntent ID", "Payment Intent ID"}},
		{names: []string{p.format.Marker + " (metadata)"}},
		{names: []string{"Captured"}},
	}
}

func (p *stripePayments) begin(_ header, note noter) error {
	if p.note = note; !p.format.numbers.declared && p.format.numbers.thousands == 0 {
		p.format.numbers.thousands = ',' // the list groups them where the report does not
	}
	return nil
}

// end tells what the list is good for: totals to hold against, no refunds.
func (p *stripePayments) alone() bool { return true }

func (p *stripePayments) end() error {
	if p.payments == 0 {
		return nil
	}
	sums := make([]string, 0, len(p.refunded))
	for _, c := range slices.Sorted(maps.Keys(p.refunded)) {
		sums = append(sums, recon.Money{Minor: p.refunded[c], Currency: c}.Text(stripeExponents))
	}
	p.note(0, "this export has no refund ids, so it can neither confirm nor clear a refund; %d of its payments have refunds, %s in all",
		p.payments, strings.Join(sums, " and "))
	return nil
}

// paymentStatuses are the words of the list. A payment that was given back happened.
var paymentStatuses = map[string]recon.EffectStatus{
	"paid": recon.Completed, "succeeded": recon.Completed, "refunded": recon.Completed, "partially refunded": recon.Completed,
	"partial refund": recon.Completed, "disputed": recon.Completed,
	"pending": recon.InFlight, "processing": recon.InFlight, "uncaptured": recon.InFlight, "requires_capture": recon.InFlight,
	"failed": recon.EffectFailed, "canceled": recon.EffectFailed, "cancelled": recon.EffectFailed, "blocked": recon.EffectFailed,
}

func (p *stripePayments) read(rec *record, row *Row) error {
	e := &row.Effect
	e.Source, e.System = p.format.Source, p.format.System
	if err := p.identity(rec, e); err != nil {
		return err
	}
	if !p.format.has(e.Account, e.Mode) {
		return nil // set aside, whatever else it says
	}
	status, known := paymentStatuses[strings.ToLower(rec.get(payStatus))]
	if !known {
		return refuse("Status: %q is no status of a payment that is known here", shown(rec.get(payStatus)))
	}
	if e.Status = status; status == recon.Completed && strings.EqualFold(rec.get(payCaptured), "false") {
		e.Status = recon.InFlight // a hold that was placed and not captured
	}
	utc := p.format.dates
	utc.zone = time.UTC
	at, err := minutes(utc, rec.get(payCreated))
	if err != nil {
		return named("Created (UTC)", err)
	}
	e.CreatedAt = at
	if e.Parent, err = text1("PaymentIntent ID", rec.get(payIntent)); err != nil {
		return err
	}
	if e.Parent == e.ID {
		e.Parent = ""
	}
	if e.Reference, err = text1("metadata", rec.get(payMark)); err != nil {
		return err
	}
	return p.money(rec, e)
}

func (p *stripePayments) identity(rec *record, e *recon.Effect) (err error) {
	if e.ID, err = text1("id", rec.get(payID)); err != nil {
		return err
	}
	switch {
	case e.ID == "":
		return refuse("id is empty")
	case strings.HasPrefix(e.ID, "pi_"):
		e.Kind = "payment_intent"
	default:
		e.Kind = "charge"
	}
	mode, known := modeOf(rec.get(payMode), nil)
	if !known {
		return refuse("Mode: %q is neither Live nor Test", shown(rec.get(payMode)))
	}
	var one bool
	if e.Account, e.Mode, one = p.format.place("", mode); !one {
		return refuse("the source has several accounts and the list does not say which it is of; import it for a source with one account")
	}
	return nil
}

// modeOf reads the word of a mode column; empty is not said.
func modeOf(word string, words map[string]string) (string, bool) {
	if word == "" && len(words) == 0 {
		return "", true // as in most files
	}
	if m, ok := lookUp(words, word); ok {
		return m, true
	}
	switch strings.ToLower(word) {
	case "":
		return "", true
	case "live", "true":
		return "live", true
	case "test", "false":
		return "test", true
	}
	return "", false
}

// lookUp finds a word, whatever its case.
func lookUp(words map[string]string, word string) (string, bool) {
	if m, ok := words[word]; ok {
		return m, true
	}
	for w, m := range words {
		if strings.EqualFold(w, word) {
			return m, true
		}
	}
	return "", false
}

// minutes reads a time with or without seconds: the list has both.
func minutes(d dates, cell string) (time.Time, error) {
	if len(cell) == len("2026-03-01 09:30") {
		cell += ":00"
	}
	return d.instant(cell, "")
}

func (p *stripePayments) money(rec *record, e *recon.Effect) error {
	in, err := p.format.money(rec.get(payCurrency))
	if err != nil {
		return refuse("Currency: %v", err)
	}
	v, err := p.cell(rec, payAmount, in)
	if err != nil {
		return named("Amount", err)
	}
	if v <= 0 {
		return refuse("Amount: %s is not above 0", shown(rec.get(payAmount)))
	}
	e.Money = recon.Money{Minor: v, Currency: in.code}
	if rec.get(payRefunded) != "" {
		back, err := p.cell(rec, payRefunded, in)
		switch {
		case err != nil:
			return named("Amount Refunded", err)
		case back < 0 || back > v:
			return refuse("Amount Refunded: %s is not between 0 and the amount", shown(rec.get(payRefunded)))
		case back > 0:
			p.payments++
			p.refunded[in.code] += back
		}
	}
	return p.settled(rec, e)
}

// settled reads what reached the balance, and the fee, which is in its currency.
func (p *stripePayments) settled(rec *record, e *recon.Effect) error {
	if rec.get(paySettled) == "" || rec.get(paySettledCurrency) == "" {
		return nil
	}
	in, err := p.format.money(rec.get(paySettledCurrency))
	if err != nil {
		return refuse("Converted Currency: %v", err)
	}
	v, err := p.cell(rec, paySettled, in)
	if err != nil {
		return named("Converted Amount", err)
	}
	if v > 0 {
		e.Settlement = recon.Money{Minor: v, Currency: in.code}
	}
	if rec.get(payFee) == "" {
		return nil
	}
	fee, err := p.cell(rec, payFee, in)
	if err != nil {
		return named("Fee", err)
	}
	e.Fee = &fee
	return nil
}

func (p *stripePayments) cell(rec *record, column int, in money) (int64, error) {
	return p.format.amount(rec.get(column), in)
}
