package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// outage is what an hour in which a source did not answer cost.
type outage struct {
	calls int
	looks int           // rows of evidence that say nothing new
	blind int           // findings that the source cannot be asked
	told  int           // findings of all kinds
	rows  int           // rows of the whole ledger
	over  time.Duration // from its end until the ledger knew
}

// anHourOfOutage lives through an hour of minutely sweeps with due operations and a
// provider that answers nothing, and through its end.
func (s *stand) anHourOfOutage(due int) outage {
	s.Helper()
	s.exec(fillSQL, due, monday.Add(-time.Minute))
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	rows := len(s.everything())
	for range 60 {
		s.run()
		s.pass(time.Minute)
	}
	o := outage{
		calls: len(s.stripe.Calls()), looks: number(s, `SELECT count(*)::text FROM reconciler.looks`), blind: len(s.findings(recon.FindBlind)),
		told: number(s, `SELECT count(*)::text FROM reconciler.findings`), rows: len(s.everything()) - rows,
	}
	s.stripe.ClearFaults()
	for number(s, `SELECT count(*)::text FROM reconciler.findings WHERE kind = 'blind' AND state <> 'ended'`) > 0 && o.over < time.Hour {
		s.pass(time.Minute)
		s.run()
		o.over += time.Minute
	}
	return o
}

func number(s *stand, sql string) int {
	s.Helper()
	n := 0
	for _, digit := range s.rows(sql)[0] {
		n = n*10 + int(digit-'0')
	}
	return n
}

// An outage is asked about as often, and told once, however many operations wait for its
// end; and its end is seen within the longest pause between two probes.
func TestAnHourOfOutageIsFewCallsAndOneFinding(t *testing.T) {
	t.Parallel()
	few, many := newStand(t).anHourOfOutage(20), newStand(t).anHourOfOutage(2000)
	t.Logf("few %+v, many %+v", few, many)
	if many.calls > few.calls+10 || many.calls > 200 || many.looks > 200 || many.blind != 1 || many.told != 1 || many.rows > 200 {
		t.Errorf("%+v, with few operations %+v", many, few)
	}
	if many.over > maxProbe+time.Minute {
		t.Errorf("its end was seen after %s, want at most %s", many.over, maxProbe+time.Minute)
	}
}
