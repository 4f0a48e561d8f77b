package large

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// record is what the company's own table says of an operation from before it had the
// product: four fifths of what it ever did. All of that is imported at once, some hours after
// the world began. Half of all companies have it audited then.
type record struct {
	state recon.State
	// made is how many effects there truly are. The second one was made by hand.
	made int
	// named says that the record has the effect's id.
	named bool
	// unmarked says that the sender sent nothing that it could be found by.
	unmarked bool
}

// History begins and ends so long before the world: past what the card provider's list of
// events reaches, so that nothing but its objects tells of it.
const (
	historyBegins = 60 * day
	historyEnds   = 35 * day
)

func before(name string, weight int, r record) fate {
	return fate{name: "before: " + name, weight: weight, only: onMoney, record: r}
}

// recordedRight is the old fate of whatever has no other.
var recordedRight = before("done and recorded", 0, record{state: recon.Succeeded, made: 1, named: true})

// oldFates are what is wrong with records, as [fates] is for what agents mean to do.
var oldFates = []fate{
	before("done and recorded without its id", 100, record{state: recon.Succeeded, made: 1}),
	before("recorded as done, and nothing is there", 6, record{state: recon.Succeeded}),
	before("recorded as failed", 20, record{state: recon.Failed}),
	before("recorded as failed, and it was done", 6, record{state: recon.Failed, made: 1}),
	before("unknown, and done", 250, record{state: recon.Unknown, made: 1}),
	before("unknown, done, and its id is known", 20, record{state: recon.Unknown, made: 1, named: true}),
	before("unknown, and nothing is there", 16, record{state: recon.Unknown}),
	before("unknown, nothing is there, and nothing could tell", 6, record{state: recon.Unknown, unmarked: true}),
	before("unknown, and done twice", 4, record{state: recon.Unknown, made: 2}),
	before("under way, and done", 30, record{state: recon.InProgress, made: 1}),
	before("under way, and nothing is there", 6, record{state: recon.InProgress}),
	before("never sent", 5, record{state: recon.Pending}),
	before("given to people, and done", 6, record{state: recon.ManualReview, made: 1}),
	before("unknown, and another amount was sent", 4, record{state: recon.Unknown, made: 1}).of(3),
	before("recorded as done, and another amount was sent", 4, record{state: recon.Succeeded, made: 1, named: true}).of(10),
	before("recorded as done, and it failed days later", 5, record{state: recon.Succeeded, made: 1, named: true}).on(failsLate),
	before("unknown, and it failed days later", 5, record{state: recon.Unknown, made: 1}).on(failsLate),
}

func (f fate) of(times int64) fate { f.times = times; return f }

// on gives the effect a life. Only the card provider's effects have one before the world.
func (f fate) on(l life) fate { f.life, f.only = l, onCards; return f }

// old reports whether the fate is of an operation from before.
func (f fate) old() bool { return f.record.state != "" }

// drawHistory draws when an old intent was, and makes it one that the product can know all of.
func drawHistory(rng *rand.Rand, i *intent) {
	i.guise, i.unnamed = imported, false
	i.at = epoch.Add(-historyBegins + time.Duration(rng.Int64N(int64((historyBegins-historyEnds)/time.Second)))*time.Second)
}

// remember makes what truly exists of the old intents, before anybody hears of events.
func (w *World) remember() error {
	for _, i := range w.plan.intents {
		if !i.fate.old() {
			continue
		}
		w.clock.Set(i.at)
		if i.source == cards {
			if err := w.addCharge(i); err != nil {
				return err
			}
		}
		for n := range i.fate.record.made {
			if err := w.past(i, n > 0); err != nil {
				return err
			}
		}
	}
	w.clock.Set(epoch)
	return nil
}

// past makes one old effect.
func (w *World) past(i intent, hand bool) error {
	minor := i.money.Minor * max(i.fate.times, 1)
	if i.source == bank {
		id := w.pay(i.id, i, minor)
		d := w.book.deeds[len(w.book.deeds)-1]
		d.hand, w.former[i.id] = hand, id
		return nil
	}
	d := &deed{op: i.id, source: cards, account: i.account, minor: minor, parent: i.parent, at: i.at, hand: hand, turns: i.fate.life.turns(i.at, i.n)}
	var later []stripetest.Turn
	for _, t := range d.turns {
		later = append(later, stripetest.Turn{After: t.at.Sub(i.at), Status: wordOf(t), Reason: reasonOf(t.status)})
	}
	r, err := w.at.cards.AddRefund(stripetest.Refund{
		Account: i.account, Mode: mode, Charge: i.parent, Amount: minor, Metadata: map[string]string{marker: string(i.id)},
	}, later...)
	if err != nil {
		return err
	}
	d.id, w.former[i.id] = r.ID, r.ID
	w.book.write(d)
	return nil
}

// line is the old intent as the company's table has it.
func (w *World) line(i intent) ([]byte, error) {
	r := i.fate.record
	l := map[string]any{
		"id": i.id, "source": i.source, "action": i.action, "target": i.target, "parent": i.parent, "amount": i.money.Minor, "currency": i.money.Currency,
		"state": r.state, "created_at": i.at, "case": fmt.Sprintf("case-%d", i.n),
	}
	if i.source == cards {
		l["account"], l["mode"] = i.account, mode
	}
	if r.state != recon.Pending {
		l["sent_at"] = i.at.Add(time.Second)
	}
	if !r.state.Open() {
		l["closed_at"] = i.at.Add(2 * time.Second)
	}
	if r.named {
		l["effect_id"] = w.former[i.id]
	}
	if !r.unmarked {
		l["marks"] = []recon.Mark{recon.MarkReference}
	}
	return json.Marshal(l)
}

// inherit imports the company's own records, twice as somebody does who is not sure whether it
// went through.
func (w *World) inherit(ctx context.Context) error {
	if w.busy() {
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.inherit(ctx) })
		return nil
	}
	var table bytes.Buffer
	rows := 0
	for _, i := range w.plan.intents {
		if i.fate.old() {
			text, err := w.line(i)
			if err != nil {
				return err
			}
			table.Write(append(text, '\n'))
			rows++
		}
	}
	var first, again ledger.ImportResult
	err := w.mortally(inImport, func() (err error) {
		if first, err = w.ledger.Import(ctx, bytes.NewReader(table.Bytes()), w.clock.Now()); err == nil {
			again, err = w.ledger.Import(ctx, bytes.NewReader(table.Bytes()), w.clock.Now())
		}
		return err
	})
	switch {
	case errors.Is(err, errDied):
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.inherit(ctx) })
		return nil
	case err != nil:
		return err
	case first.Imported+first.Repeated != rows || again.Repeated != rows:
		w.fault("an import takes every line once", "of %d lines: first %+v, then %+v", rows, first, again)
	}
	w.inherited = w.clock.Now()
	for _, i := range w.plan.intents {
		if i.fate.old() {
			w.learn(i)
		}
	}
	if w.plan.nature.looksBack {
		w.agenda.Plan(w.clock.Now().Add(2*time.Hour), func() error { return w.auditAll(ctx) })
	}
	return nil
}

// learn notes down what the company's table says of an old intent.
func (w *World) learn(i intent) {
	switch s := i.fate.record.state; s {
	case recon.Succeeded, recon.Failed:
		w.bySender[i.id], w.succeeded[i.id] = s, s == recon.Succeeded
	case recon.Unknown, recon.InProgress, recon.ManualReview:
		w.doubt[i.id] = i.at
	}
	w.expect(i.source, w.clock.Now())
}

// auditAll audits all that ever was.
func (w *World) auditAll(ctx context.Context) error {
	if w.busy() {
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.auditAll(ctx) })
		return nil
	}
	for _, name := range sourceNames {
		var out sweep.AuditResult
		err := w.mortally(inAuditAll, func() (err error) {
			out, err = w.audits[name].Run(ctx, sweep.AuditOptions{Now: w.clock.Now, Window: recon.Window{From: epoch.Add(-historyBegins - day)}})
			return err
		})
		if errors.Is(err, errDied) {
			w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.auditAll(ctx) })
			return nil
		}
		if err != nil {
			return err
		}
		w.audited(name, out)
	}
	return nil
}
