package rules

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// day is the step after the ladder's last rung, and of operations that wait for a
	// person.
	day = 24 * time.Hour
	// beforeExpiry is when one look is always planned: it leaves time to decide on a
	// repeat while the key still protects it.
	beforeExpiry = 10 * time.Minute
	// After a blind look the next try comes soon and then ever later: an outage of a
	// minute costs a minute, one of a day costs few requests.
	blindFirst, blindMost = 30 * time.Second, 10 * time.Minute
)

// rungs is when closed operations are looked at again: refunds fail up to a month
// after they succeeded, and a closing can be wrong.
var rungs = []time.Duration{day, 7 * day, 30 * day, 90 * day}

// plan gives the whole next check.
func (v *view) plan(said conclusion) recon.Check {
	k := v.c.Check
	k.Absence, k.Failures = v.absence, 0
	from, to := v.state(), said.to
	again := v.again(to)
	switch {
	case again:
		k.Blinds++
	case v.heard:
		k.Looks++
		k.Blinds = 0
	}
	if from == recon.Pending && to == recon.Unknown {
		k.Absence = recon.Absence{} // what was not there before a release proves nothing now
	}
	switch {
	case !to.Open():
		return v.planClosed(k, to)
	case again:
		k.Next = v.now.Add(backoff(k.Blinds))
	case said.release:
		k.Next = v.now.Add(v.c.Policy.StalePending.Std())
	case !v.heard && from == to && k.Next.After(v.now):
		// Nothing was asked and nothing is new: the plan stands.
	default:
		k.Next = v.rung(to)
	}
	k.Rung = 0
	v.lookBeforeExpiry(&k, to)
	return k
}

// again reports whether the next look is to come soon because this pass brought nothing: no
// answer at all, or none for the effect on which all depends.
func (v *view) again(to recon.State) bool {
	return v.state() == to && (v.blind || v.heard && !v.leased && v.unsought())
}

func backoff(blinds int) time.Duration {
	d := blindFirst
	for n := 1; n < blinds && d < blindMost; n++ {
		d *= 2
	}
	return min(d, blindMost)
}

// rung is the next moment of the ladder after now. The ladder is one of moments, not
// of tries: a source that could not be asked uses up none of it.
func (v *view) rung(to recon.State) time.Time {
	op, p := &v.c.Operation, &v.c.Policy
	if to == recon.ManualReview {
		return v.now.Add(day)
	}
	base := v.since()
	switch {
	case v.leased:
		if after := op.LeaseUntil; after.After(v.now) {
			return after
		}
	case to == recon.Unknown && v.state() != recon.Unknown:
		base = v.now
	case to == recon.Pending && op.SentAt.IsZero():
		base = op.CreatedAt
	case to == recon.Pending:
		if stale := v.releasedAt().Add(p.StalePending.Std()); stale.After(v.now) {
			return stale
		}
	}
	if t := base.Add(p.CheckAfter.Std()); t.After(v.now) {
		return t
	}
	last := p.CheckAfter.Std()
	for _, c := range p.Checks {
		if t := base.Add(c.Std()); t.After(v.now) {
			return t
		}
		last = max(last, c.Std())
	}
	return base.Add(last).Add((v.now.Sub(base.Add(last))/day + 1) * day)
}

// lookBeforeExpiry makes sure that one look falls before the key is too old for a
// safe repeat.
func (v *view) lookBeforeExpiry(k *recon.Check, to recon.State) {
	expires := v.keyExpires()
	if expires.IsZero() || to == recon.ManualReview {
		return
	}
	t := expires.Add(-v.c.Policy.KeyMargin.Std()).Add(-beforeExpiry)
	if t.After(v.now) && t.Before(k.Next) {
		k.Next = t
	}
}

// planClosed puts a closed operation on the slow ladder.
func (v *view) planClosed(k recon.Check, to recon.State) recon.Check {
	op := &v.c.Operation
	closed := op.ClosedAt
	switch {
	case v.state() != to:
		closed, k.Rung, k.Absence = v.now, 0, recon.Absence{}
	case v.again(to):
		k.Next = v.now.Add(backoff(k.Blinds))
		return k
	case !v.heard && k.Next.After(v.now):
		return k
	case closed.IsZero():
		closed = op.CreatedAt // imported without: the most cautious reading
	}
	for ; k.Rung < len(rungs); k.Rung++ {
		if t := closed.Add(jitter(op.ID, k.Rung)); t.After(v.now) {
			k.Next = t
			return k
		}
	}
	k.Next = time.Time{}
	return k
}

// jitter moves a rung by up to a fifth either way, always the same for the same
// operation, so that a day of many closings does not come back as one day of looks.
func jitter(id recon.OperationID, rung int) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(string(id) + "/" + strconv.Itoa(rung)))
	const steps = 1000
	share := time.Duration(h.Sum32()%(2*steps+1)) - steps // −1000 … 1000
	return rungs[rung] + rungs[rung]/5*share/steps
}
