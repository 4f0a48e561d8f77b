package large

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// about is what a finding is about, as the judge counts: its kind with the operation, or
// where it has none with the effect or the source.
type about struct {
	kind recon.FindingKind
	of   string
}

func aboutOf(f ledger.FindingRow) []about {
	var list []about
	for _, id := range f.Operations {
		list = append(list, about{f.Kind, string(id)})
	}
	if len(list) == 0 {
		for _, e := range f.Effects {
			list = append(list, about{f.Kind, string(e.Source) + "/" + e.ID})
		}
	}
	if len(list) == 0 {
		list = append(list, about{f.Kind, string(f.Source)})
	}
	return list
}

// judgeFindings holds the findings against those that the truth demands and allows.
func (w *World) judgeFindings(a books) {
	must, may := map[about]string{}, map[about]bool{}
	for _, i := range w.plan.intents {
		o, there := a.ops[i.id]
		switch {
		case there && w.untold[i.id]: // what nobody was told nobody can find
			could := map[about]string{}
			w.demand(i, o, could, may)
			for key := range could {
				may[key] = true
			}
		case there:
			w.demand(i, o, must, may)
		}
	}
	for _, d := range w.book.all() {
		if d.op == "" {
			must[about{recon.FindOrphan, string(d.source) + "/" + d.id}] = "made by hand without reference"
		}
	}
	for _, name := range sourceNames {
		key := about{recon.FindBlind, string(name)}
		may[key] = w.couldBeBlind(name)
		if w.downFor[name] >= 45*time.Minute {
			must[key] = fmt.Sprintf("every look was blind for %s of an outage", w.downFor[name])
		}
	}
	w.planted = demanded(must)
	told := map[about]int{}
	for _, f := range a.findings {
		for _, key := range aboutOf(f) {
			_, demanded := must[key]
			fate := w.intents[recon.OperationID(key.of)].fate.name
			if !demanded && !may[key] && !w.wasMissing(f) {
				w.fault(falseFinding, "%s (%s)", text(f), fate)
			}
			if told[key]++; told[key] > w.most(key) {
				w.fault(falseFinding, "%s (%s): that is told %d times, and is so %d times", text(f), fate, told[key], w.most(key))
			}
			may[key] = true // seen
			delete(must, key)
		}
	}
	left := make([]about, 0, len(must))
	for key := range must {
		left = append(left, key)
	}
	slices.SortFunc(left, func(x, y about) int {
		return slices.Compare([]string{x.of, string(x.kind)}, []string{y.of, string(y.kind)})
	})
	for _, key := range left {
		w.fault(missedFinding, "%s on %s: %s", key.kind, key.of, must[key])
	}
}

// wasMissing reports whether a finding that something is missing was true when it was found, and
// people then let an agent send it once more: what came of that came later.
func (w *World) wasMissing(f ledger.FindingRow) bool {
	if f.Kind != recon.FindMissing || len(f.Operations) != 1 {
		return false
	}
	op := f.Operations[0]
	since, doubted := w.doubt[op]
	again, released := w.released[op]
	there := slices.ContainsFunc(w.book.by(op), func(d *deed) bool { return !d.at.After(f.OpenedAt) })
	return released && again.After(f.OpenedAt) && doubted && since.Before(f.OpenedAt) && !there && !w.silent(w.intents[op])
}

// most is how many findings of a kind the truth can bear out on one thing. What effects show is
// another finding when one more of them is there.
func (w *World) most(key about) int {
	effects := len(w.book.by(recon.OperationID(key.of)))
	switch key.kind {
	case recon.FindDuplicate:
		twins := 0
		for _, i := range w.plan.intents {
			if i.twinOf >= 0 && (i.id == recon.OperationID(key.of) || i.twinOf == w.intents[recon.OperationID(key.of)].n) {
				twins = 1
			}
		}
		return max(effects-1, 0) + twins
	case recon.FindMismatch, recon.FindReversed, recon.FindConflict:
		return max(effects, 1)
	case recon.FindUnresolved: // not found, and found in flight for too long
		return 1 + effects
	}
	return 1
}

// couldBeBlind reports whether the source was out of reach for so long that it is told.
func (w *World) couldBeBlind(name recon.SourceName) bool {
	return max(w.blindFor[name], w.brokeFor[name]) >= 15*time.Minute || name == cards && w.narrow || slices.ContainsFunc(w.outages[name], func(o recon.Window) bool { return o.To.Sub(o.From) >= 10*time.Minute })
}

// demand says which findings the truth demands of one operation, and which it allows.
func (w *World) demand(i intent, o recon.Operation, must map[about]string, may map[about]bool) {
	key := func(k recon.FindingKind) about { return about{k, string(i.id)} }
	now, deeds := w.clock.Now(), w.book.by(i.id)
	var live, equal int
	for _, d := range deeds {
		if d.live(now) {
			live++
			if d.equals(i) {
				equal++
			}
		}
	}
	switch {
	case live > 1:
		must[key(recon.FindDuplicate)] = fmt.Sprintf("%s: it has %d live effects", i.fate.name, live)
	case live == 1 && equal == 0:
		must[key(recon.FindMismatch)] = i.fate.name
	case live == 0 && len(deeds) > 0 && w.succeeded[i.id]:
		must[key(recon.FindReversed)] = i.fate.name
	case len(deeds) == 0 && o.SentAt.IsZero() && i.source == told:
		may[key(recon.FindNeverSent)] = true // it is told when somebody could look first
	case len(deeds) == 0 && o.SentAt.IsZero():
		must[key(recon.FindNeverSent)] = i.fate.name
	case len(deeds) == 0 && i.fate.old() && w.person[i.id] == recon.DidNotHappen:
		may[key(recon.FindMissing)] = true // somebody was quicker than the third look
	case len(deeds) == 0 && w.bySender[i.id] != recon.Failed && !w.silent(i):
		must[key(recon.FindMissing)] = i.fate.name
	}
	if live == 0 && len(deeds) > 0 {
		may[key(recon.FindReversed)] = true
	}
	if since, doubted := w.doubt[i.id]; doubted && i.source != told && len(deeds) > 0 && deeds[0].at.Sub(since) > 10*time.Minute {
		may[key(recon.FindMissing)] = true // it was not there for long enough to be told
	}
	if i.fate.again && i.source == told {
		may[key(recon.FindMismatch)] = true // its own one is not told of yet, and cannot be read
	}
	if i.fate.elsewhere {
		may[key(recon.FindMissing)] = true // it is not where it was to be
	}
	if i.fate.unseen > 0 && len(deeds) == 1 {
		must[about{recon.FindMismatch, string(i.source) + "/" + deeds[0].id}] = i.fate.name
	}
	if (w.person[i.id] == recon.DidNotHappen || i.fate.record.state == recon.Failed) && equal > 0 {
		must[key(recon.FindConflict)] = i.fate.name
	}
	w.demandTwin(i, must)
	w.demandTriple(i, must)
	w.demandTold(i, o, must, may)
}

// demandTwin demands that two operations for one intent are told, when both were done.
func (w *World) demandTwin(i intent, must map[about]string) {
	if i.twinOf < 0 {
		return
	}
	for _, of := range w.plan.intents {
		if of.n == i.twinOf && len(w.book.by(of.id)) == 1 && len(w.book.by(i.id)) == 1 {
			must[about{recon.FindDuplicate, string(i.id)}] = i.fate.name
			must[about{recon.FindDuplicate, string(of.id)}] = i.fate.name
		}
	}
}

// demandTriple demands that what fails for one target again and again is told.
func (w *World) demandTriple(i intent, must map[about]string) {
	failed := 0
	for _, of := range w.plan.intents {
		if i.threeOf >= 0 && of.threeOf == i.threeOf && len(w.book.by(of.id)) == 1 {
			failed++
		}
	}
	if failed == 3 {
		must[about{recon.FindFailing, string(i.id)}] = i.fate.name
	}
}

// demandTold demands that what stays in doubt is told.
func (w *World) demandTold(i intent, o recon.Operation, must map[about]string, may map[about]bool) {
	since, doubted := w.doubt[i.id]
	if !doubted {
		return
	}
	key := about{recon.FindUnresolved, string(i.id)}
	until := o.ClosedAt
	if until.IsZero() {
		until = w.clock.Now()
	}
	long := until.Sub(since)
	may[key] = long >= 15*time.Minute-w.plan.nature.cadence
	// Elsewhere it may be known to be missing before it is in question for long enough.
	// Where nothing can be asked, the source's own finding says it for all of its operations.
	if i.source != told && w.silent(i) && len(w.book.by(i.id)) == 0 && !o.SentAt.IsZero() && w.bySender[i.id] == "" && long > 12*time.Hour {
		must[key] = fmt.Sprintf("%s: in doubt for %s", i.fate.name, long)
	}
}

// silent reports whether the source's "not there" proves nothing
// for this operation: nothing can be asked, it forgets without saying when, or nobody knows at
// which account to ask.
func (w *World) silent(i intent) bool {
	return i.fate.record.unmarked || i.source == told || i.source == letters && w.plan.nature.postLag == 0 || i.source == cards && w.plan.nature.shops && i.unnamed
}
