package large

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// request is what the ledger is asked to record for an intent. Twins have no case, so that
// each gets a key of its own.
func (i intent) request() (ledger.OpenRequest, error) {
	body, err := json.Marshal(map[string]any{"parent": i.parent, "amount": i.money.Minor})
	r := ledger.OpenRequest{
		ID: i.id, Action: i.action, Target: i.target, Parent: i.parent, Amount: i.money.Minor, Currency: i.money.Currency,
		Account: map[bool]string{false: i.account}[i.unnamed], Request: body, Run: fmt.Sprintf("run-%d", i.n), ToolCall: "call-1", Agent: "agent",
	}
	step := int64(1)
	r.Case, r.Step = fmt.Sprintf("case-%s-%d", i.source, i.n), &step
	if i.fate.name == twin.name {
		r.Case, r.Step, r.Key = "", nil, "key-"+string(i.id)
	}
	return r, err
}

// begin plans what an agent does about an intent.
func (w *World) begin(ctx context.Context, i intent) error {
	switch i.guise {
	case queued:
		if err := w.enqueue(ctx, i); err != nil {
			return err
		}
		w.agenda.Plan(i.at.Add(10*time.Second), func() error { return w.work(ctx, i) })
		return nil
	case bare:
		if err := w.open(ctx, i); err != nil {
			return err
		}
	}
	for n, t := range i.fate.tries {
		if t.crash == diesForever {
			continue
		}
		w.agenda.Plan(i.at.Add(t.after), func() error { return w.act(ctx, i, n) })
	}
	if i.fate.again || i.fate.stray {
		op := i.id
		if i.fate.stray {
			op = ""
		}
		// Days later, when its own effect has long been seen.
		w.agenda.Plan(i.at.Add(day+time.Duration(i.n%50)*time.Hour), func() error { return w.byHand(i, op) })
	}
	if i.fate.rehearsed {
		w.agenda.Plan(i.at.Add(time.Duration(1+i.n%50)*time.Minute), func() error { return w.rehearse(i) })
	}
	return nil
}

// open records the intent through the ledger's function alone.
func (w *World) open(ctx context.Context, i intent) error {
	r, err := i.request()
	if err != nil {
		return err
	}
	answer, err := w.ledger.OpenOperation(ctx, r)
	if err == nil && answer.OperationID != i.id {
		return fmt.Errorf("%s: opened as %s (%s: %s)", i.id, answer.OperationID, answer.Verdict, answer.Reason)
	}
	w.expect(i.source, i.at.Add(15*time.Minute)) // should nobody ever send it
	return err
}

// enqueue records the intent in a transaction of the caller's.
func (w *World) enqueue(ctx context.Context, i intent) error {
	r, err := i.request()
	if err != nil {
		return err
	}
	tx, err := w.ledger.Pool().Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	if _, err := guard.Enqueue(ctx, tx, r); err != nil {
		return err
	}
	w.expect(i.source, i.at.Add(15*time.Minute))
	return tx.Commit(ctx)
}

// work lets a worker send what waits, the longest-waiting first, until nothing does.
func (w *World) work(ctx context.Context, i intent) error {
	life := &mortal{Ledger: w.ledger, left: math.MaxInt}
	e, dies := w.dying[inWorker]
	if dies {
		life.left = e.left
	}
	var sent recon.OperationID
	worker := guard.Worker{Guard: &guard.Guard{Ledger: life, Holder: "worker"}, Action: i.action, Send: func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		sent = a.Operation
		return w.send(ctx, w.intents[sent], a)
	}}
	for {
		answer, err := worker.Once(ctx)
		switch {
		case errors.Is(err, errDied):
			return w.workerDied(ctx, i, sent)
		case err != nil:
			return err
		case answer.Attempts == 0:
			if dies { // it got through; the next one goes on counting
				w.dying[inWorker] = ending{left: life.left}
			}
			return nil
		}
		w.heard(w.intents[answer.Operation], answer.State)
	}
}

// workerDied lets another worker go on. What the dead one had claimed is in doubt; of what it
// sent last the ledger may know more than it heard.
func (w *World) workerDied(ctx context.Context, i intent, sent recon.OperationID) error {
	w.tally.fault("product died in " + string(inWorker))
	delete(w.dying, inWorker)
	list, err := w.ledger.Operations(ctx, ledger.OperationFilter{Action: i.action, Limit: MaxOperations})
	if err != nil {
		return err
	}
	for _, o := range list {
		switch {
		case o.ID == sent:
			w.heard(w.intents[o.ID], o.State)
		case o.State == recon.InProgress:
			w.doubts(w.intents[o.ID])
		}
	}
	w.expect(i.source, w.clock.Now().Add(3*time.Minute))
	w.agenda.Plan(w.clock.Now().Add(30*time.Second), func() error { return w.work(ctx, i) })
	return nil
}

// act is one try of an agent. A crash ends it where the fate says; the process that died
// is told nothing.
func (w *World) act(ctx context.Context, i intent, n int) error {
	t := i.fate.tries[n]
	switch {
	case t.crash == diesAtOnce:
		life := &mortal{Ledger: w.ledger, left: i.n % 7}
		err := w.guarded(ctx, i, n, life)
		if errors.Is(err, errDied) {
			w.tally.fault("agent died at a statement")
			w.doubts(i)
			w.expect(i.source, w.clock.Now().Add(time.Minute))
			return nil
		}
		return err
	case i.guise == guarded:
		return w.guarded(ctx, i, n, w.ledger)
	}
	return w.step(ctx, i, n)
}

// guarded acts through package guard. It does not wait for another attempt: when it may
// act again is the plan's.
func (w *World) guarded(ctx context.Context, i intent, n int, l guard.Ledger) error {
	r, err := i.request()
	if err != nil {
		return err
	}
	w.expect(i.source, i.at.Add(15*time.Minute)) // should it not be sent
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	g := guard.Guard{Ledger: l, Holder: "agent"}
	answer, err := g.Do(ctx, guard.Call{Intent: r, ID: fmt.Sprint("call-", n), Send: func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		defer gone() // the caller waits for no second attempt
		return w.send(ctx, i, a)
	}})
	if err != nil {
		return err
	}
	if answer.Attempts > 0 {
		w.heard(i, answer.State)
	}
	return nil
}

// step acts through the ledger's functions alone, so that it can die between two of them.
func (w *World) step(ctx context.Context, i intent, n int) error {
	t := i.fate.tries[n]
	claim, err := w.ledger.Claim(ctx, ledger.ClaimRequest{OperationID: i.id, Holder: "agent", Call: fmt.Sprint("call-", n)})
	if err != nil || !claim.Claimed {
		return err
	}
	if t.crash != survives || i.fate.late || i.fate.stall > 0 {
		w.expect(i.source, claim.LeaseUntil)
	}
	if t.crash == diesUnsent {
		w.tally.fault("agent died before the call")
		w.doubts(i)
		return nil
	}
	if i.fate.byOwnClock() && n == 0 || i.fate.skew > 0 {
		if i.fate.stall == 0 {
			return w.wake(ctx, i, claim)
		}
		w.doubts(i)
		w.agenda.Plan(w.clock.Now().Add(i.fate.stall), func() error { return w.wake(ctx, i, claim) })
		return nil
	}
	report := w.send(ctx, i, attemptOf(i, claim))
	finish := func() error { return w.finish(ctx, i, claim, report) }
	switch {
	case t.crash == diesUntold:
		w.tally.fault("agent died after the call")
		w.doubts(i)
		return nil
	case i.fate.late:
		w.tally.fault("agent stalled past its lease")
		w.doubts(i)
		w.agenda.Plan(w.clock.Now().Add(time.Duration(2+i.n%90)*time.Minute), finish)
		return nil
	}
	return finish()
}

func attemptOf(i intent, claim ledger.ClaimAnswer) guard.Attempt {
	return guard.Attempt{Operation: i.id, Key: claim.Key, Marker: claim.Marker, InDoubt: claim.InDoubt}
}

// sendReleased is an agent's try of what a person released. Whatever befalls it, it bears the key of
// the earlier ones.
func (w *World) sendReleased(ctx context.Context, i intent) error {
	claim, err := w.ledger.Claim(ctx, ledger.ClaimRequest{OperationID: i.id, Holder: "agent", Call: "call-released"})
	if err != nil || !claim.Claimed {
		return err
	}
	return w.finish(ctx, i, claim, w.send(ctx, i, attemptOf(i, claim)))
}

// wake goes on with a claim by the agent's own clock. The ledger judges by its own.
func (w *World) wake(ctx context.Context, i intent, claim ledger.ClaimAnswer) error {
	report := recon.AttemptReport{Class: recon.ClassNotSent, ErrorCode: "too_late"}
	switch own := w.clock.Now().Add(i.fate.skew); {
	case own.Before(claim.SendBefore):
		w.tally.fault("agent sent after its lease, by its own clock")
		report = w.send(ctx, i, attemptOf(i, claim))
	default:
		w.tally.fault("agent did not send, by its own clock")
	}
	return w.finish(ctx, i, claim, report)
}

// finish tells the ledger what came of an attempt.
func (w *World) finish(ctx context.Context, i intent, claim ledger.ClaimAnswer, report recon.AttemptReport) error {
	answer, err := w.ledger.Finish(ctx, ledger.FinishRequest{
		OperationID: i.id, Token: claim.Token, Class: report.Class, EffectID: report.EffectID, ErrorCode: report.ErrorCode, RequestID: report.RequestID,
	})
	if err == nil && answer.Applied {
		w.heard(i, answer.State)
	}
	if err == nil && answer.Applied && !w.clock.Now().Before(claim.LeaseUntil) {
		w.fault("the ledger's clock rules", "%s (%s): an answer was taken at %s, under a lease until %s", i.id, i.fate.name, w.clock.Now(), claim.LeaseUntil)
	}
	return err
}

// heard is what an agent learned of the state; where that is not the end, the product has
// to find it.
func (w *World) heard(i intent, s recon.State) {
	if s.Open() {
		w.doubts(i)
		w.expect(i.source, w.clock.Now().Add(30*time.Second))
	} else {
		w.closedBySender(i, s)
	}
}

// send makes one request, with what befalls it, and says how that went.
func (w *World) send(ctx context.Context, i intent, a guard.Attempt) recon.AttemptReport {
	w.sent[i.id]++
	w.maySend(ctx, i, a.Key)
	m := fine
	if n := w.sent[i.id] - 1; n < len(i.fate.befalls) {
		m = i.fate.befalls[n]
	}
	if m != fine {
		w.tally.fault(m.String())
	}
	if i.onCards() {
		return w.refund(ctx, i, a, m)
	}
	return w.make(i, a, m)
}

// make has one of the plain providers do something. Nothing of it is sent over HTTP: their
// fakes only answer questions.
func (w *World) make(i intent, a guard.Attempt, m mishap) recon.AttemptReport {
	switch {
	case m == landsDays:
		w.agenda.Plan(w.clock.Now().Add(4*day+6*time.Hour), func() error { w.pay(i.id, i, i.money.Minor); return nil })
		return recon.AttemptReport{Class: recon.ClassIndeterminate, ErrorCode: "timeout"}
	case m == turnedAway:
		return recon.AttemptReport{Class: recon.ClassNotSent, ErrorCode: "rate_limited"}
	case m == refused && !a.InDoubt:
		return recon.AttemptReport{Class: recon.ClassRefused, ErrorCode: "no_such_account"}
	case m == requestLost || m == refused:
		return recon.AttemptReport{Class: recon.ClassIndeterminate, ErrorCode: "timeout"}
	}
	var id string
	if i.source == bank {
		id = w.pay(i.id, i, i.money.Minor*max(i.fate.times, 1))
	} else {
		id = w.write(i)
	}
	if m == answerLost {
		return recon.AttemptReport{Class: recon.ClassIndeterminate, ErrorCode: "timeout"}
	}
	return recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: id}
}

// refund sends a refund to the card provider, over real HTTP with the real client.
func (w *World) refund(ctx context.Context, i intent, a guard.Attempt, m mishap) recon.AttemptReport {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	if f, ok := m.fault(w.sent[i.id] + i.n); ok {
		w.tally.fault("card provider answers a refund: " + faultName(f))
		f.Method, f.Key = http.MethodPost, a.Key
		f.OnHold = func(stripetest.Call) { gone() } // whoever sent it goes as soon as the provider has it
		w.at.cards.Script(f)
	}
	ctx, sent := stripe.Begin(ctx, stripe.Sending{Key: a.Key, Marker: a.Marker.Name, Reference: a.Marker.Value, InDoubt: a.InDoubt})
	p := &stripego.RefundCreateParams{Charge: stripego.String(i.parent), Amount: stripego.Int64(i.money.Minor * max(i.fate.times, 1))}
	p.SetIdempotencyKey(a.Key)
	if to := w.sendTo(i); to == shop {
		p.SetStripeAccount(to)
	}
	p.AddMetadata(a.Marker.Name, a.Marker.Value)
	_, _ = w.clients[i.source].V1Refunds.Create(ctx, p) // the report reads the wire, which knows more than the client tells
	if m == gaveUp {
		w.untilDone(i.id)
	}
	return sent.Report()
}

func (m mishap) String() string {
	return [...]string{"none", "answer lost", "request lost", "stored 500, done", "stored 500, not done", "turned away", "lands late", "lands days later", "refused", "stored 500, done late", "sender gave up waiting"}[m]
}
