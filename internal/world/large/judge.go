package large

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Checks that are named in more than one place. The table shows the first five with their
// number whatever it is.
const (
	wrongClose    = "wrong close"
	missedFinding = "missed finding"
	falseFinding  = "false finding"
	unasked       = "nothing is called absent where nobody could ask"
	secondEffect  = "second effect of one operation caused by us"
	rowFirst      = "nothing is sent before its row is committed"
	oneKey        = "one key per operation for ever"
	liveLease     = "nothing is sent without a live lease"
	staleToken    = "a stale token changes nothing"
)

// Verdict is how the product did in one world, held against the truth.
type Verdict struct {
	Numbers
	// Wrongs name everything that is wrong, each with the check that says so.
	Wrongs []string
}

// lastOrders lets the product come to an end with all that is due before it is judged: one
// more day, with an audit of everything.
func (w *World) lastOrders(ctx context.Context) error {
	w.at.cards.ClearFaults()
	w.at.bank.Mend()
	w.at.post.Mend()
	w.deaf = false
	clear(w.dying)
	end := w.over().Add(day)
	w.clock.Set(end)
	if err := w.ledger.SetSimulatedTime(ctx, end); err != nil {
		return err
	}
	if err := w.recoverTold(ctx); err != nil {
		return err
	}
	if err := w.auditAll(ctx); err != nil {
		return err
	}
	for {
		if err := w.sweepAll(ctx); err != nil {
			return err
		}
		if err := w.reverify(ctx); err != nil {
			return err
		}
		if err := w.tell(ctx); err != nil {
			return err
		}
		w.clock.Set(w.clock.Now().Add(20 * time.Minute))
		if err := w.ledger.SetSimulatedTime(ctx, w.clock.Now()); err != nil {
			return err
		}
		if w.clock.Now().Sub(end) > time.Hour {
			return nil
		}
	}
}

// books are everything that the ledger holds in the end.
type books struct {
	ops      map[recon.OperationID]recon.Operation
	stories  map[recon.OperationID]recon.Story
	findings []ledger.FindingRow
	calls    []stripetest.Call // that the card provider got
	snapshot ledger.Snapshot
	chains   ledger.VerifyResult
}

func (w *World) read(ctx context.Context) (books, error) {
	a := books{ops: map[recon.OperationID]recon.Operation{}, stories: map[recon.OperationID]recon.Story{}, calls: w.at.cards.Calls()}
	list, err := w.ledger.Operations(ctx, ledger.OperationFilter{Limit: 10_000})
	if err != nil {
		return a, err
	}
	var ids []recon.OperationID
	for _, o := range list {
		a.ops[o.ID] = o
		ids = append(ids, o.ID)
	}
	for chunk := range slices.Chunk(ids, 500) {
		stories, err := w.ledger.Stories(ctx, chunk)
		if err != nil {
			return a, err
		}
		for _, s := range stories {
			a.stories[s.Operation.ID] = s
		}
	}
	if a.findings, err = w.ledger.Findings(ctx, ledger.FindingFilter{Limit: 10_000}); err != nil {
		return a, err
	}
	if a.snapshot, err = w.ledger.Snapshot(ctx, w.clock.Now()); err != nil {
		return a, err
	}
	a.chains, err = w.ledger.Verify(ctx)
	return a, err
}

// judge holds the ledger against the truth.
func (w *World) judge(ctx context.Context) (Verdict, error) {
	a, err := w.read(ctx)
	if err != nil {
		return Verdict{}, err
	}
	w.untold = w.untoldOperations()
	for _, i := range w.plan.intents {
		w.judgeOne(i, a)
	}
	w.judgeFindings(a)
	if err := w.eventsStored(ctx); err != nil {
		return Verdict{}, err
	}
	for _, check := range checks {
		for _, said := range check.say(w, a) {
			w.fault(check.name, "%s", said)
		}
	}
	return w.sum(a), nil
}

// judgeOne holds one operation against what truly exists.
func (w *World) judgeOne(i intent, a books) {
	o, there := a.ops[i.id]
	deeds := w.book.by(i.id)
	if !there {
		if len(deeds) > 0 {
			w.fault(rowFirst, "%s (%s) has %d effects and no row", i.id, i.fate.name, len(deeds))
		}
		return
	}
	if ours := slices.DeleteFunc(slices.Clone(deeds), func(d *deed) bool { return d.hand }); len(ours) > 1 {
		w.fault(secondEffect, "%s (%s) has %d", i.id, i.fate.name, len(ours))
	}
	may := w.mayEnd(i, o, deeds)
	switch {
	case w.untold[i.id]: // the product knows less than the truth
		may = append(may, recon.Unknown, recon.ManualReview)
		if w.succeeded[i.id] {
			may = append(may, recon.Succeeded)
		}
	case i.source == told && len(deeds) == 0 && slices.Contains(may, recon.ManualReview):
		may = append(may, recon.Unknown) // people know it from the source's own finding
	}
	if !slices.Contains(may, o.State) {
		w.fault("ends in the truth", "%s (%s) of %s ended %s, and the truth demands %v (%d effects, %s)", i.id, i.fate.name, i.source, o.State, may, len(deeds), w.person[i.id])
	}
}

// untoldOperations are those of whose effects some event reached nobody, where only events
// tell of them.
func (w *World) untoldOperations() map[recon.OperationID]bool {
	untold, came, op := map[recon.OperationID]bool{}, map[string]bool{}, map[string]recon.OperationID{}
	if w.plan.nature.feed {
		return untold
	}
	for _, d := range w.at.cards.Deliveries() {
		came[d.Event] = came[d.Event] || d.Taken() && !d.Forged
	}
	for _, d := range w.book.all() {
		op[d.id] = d.op
	}
	for _, e := range w.at.cards.Events() {
		if e.Account == toldAccount && strings.HasPrefix(e.Type, "refund.") && !came[e.ID] {
			untold[op[e.ObjectID]] = true
		}
	}
	return untold
}

// mayEnd are the states in which an operation may end, given what truly exists.
func (w *World) mayEnd(i intent, o recon.Operation, deeds []*deed) []recon.State {
	now := w.clock.Now()
	var live, equal []*deed
	for _, d := range deeds {
		if d.live(now) {
			live = append(live, d)
			if d.equals(i) {
				equal = append(equal, d)
			}
		}
	}
	settled := w.person[i.id]
	switch {
	case len(equal) > 0: // whatever people said
		return []recon.State{recon.Succeeded}
	case len(live) > 0 && settled == recon.Accept:
		return []recon.State{recon.Succeeded}
	case len(live) > 0:
		return []recon.State{recon.ManualReview}
	case settled == recon.DidNotHappen:
		return []recon.State{recon.Failed}
	case len(deeds) > 0 && w.succeeded[i.id]:
		return []recon.State{recon.ManualReview}
	case len(deeds) > 0:
		// It failed before anybody saw it done; or after, and nobody of us was told.
		return []recon.State{recon.Failed, recon.ManualReview}
	case w.bySender[i.id] == recon.Failed:
		return []recon.State{recon.Failed}
	case o.SentAt.IsZero():
		return []recon.State{recon.Pending}
	}
	return []recon.State{recon.ManualReview}
}

// sum is the verdict in numbers.
func (w *World) sum(a books) Verdict {
	w.countSlackFaults()
	n := w.tally.n
	n.Worlds, n.Operations, n.Rows, n.Effects = 1, len(w.plan.intents), len(a.ops), len(w.book.all())
	n.Audits, n.Reports, n.Events, n.Messages = w.tally.audits, w.reported, w.events, len(w.slack.Messages(destination))
	n.SimulatedHours = int(w.clock.Now().Sub(epoch).Hours())
	for _, f := range a.findings {
		n.Findings[f.Kind]++
	}
	touched := map[recon.OperationID]bool{}
	for _, f := range a.findings {
		for _, id := range f.Operations {
			touched[id] = true
		}
	}
	n.ToPeople = len(touched)
	n.Planted = w.planted
	w.befell(&n)
	for _, i := range w.plan.intents {
		o, there := a.ops[i.id]
		if there && i.fate.old() {
			n.Imported++
		}
		since, doubted := w.doubt[i.id]
		if !there || !doubted {
			continue
		}
		n.InDoubt++
		_, sender := w.bySender[i.id]
		_, person := w.person[i.id]
		if !o.State.Open() && !sender && !person {
			n.ByEvidence++
			if i.source == told {
				n.ByEvents++
			}
			n.TimeToTruth = append(n.TimeToTruth, max(o.ClosedAt.Sub(w.known(i, since)), 0).Seconds())
		}
	}
	slices.Sort(n.TimeToTruth)
	for _, s := range w.wrong {
		n.Wrong[Check(s)]++
	}
	slices.SortStableFunc(w.wrong, func(x, y string) int { return cmp.Compare(x, y) })
	return Verdict{Numbers: n, Wrongs: w.wrong}
}

// known is since when the product can have known of a doubt.
func (w *World) known(i intent, since time.Time) time.Time {
	if i.fate.old() {
		return lastOf(since, w.inherited)
	}
	return since
}

// text names a finding in a fault.
func text(f ledger.FindingRow) string {
	return fmt.Sprintf("%s at %s on %v %v: %s", f.Kind, f.Source, f.Operations, f.Effects, f.Reason)
}
