package sweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// refundAt is a refund of a list, as nobody of ours made it.
func refundAt(id string, status recon.EffectStatus, at time.Time) recon.Effect {
	return recon.Effect{
		ID: id, Source: testSource, System: string(testSource), Kind: "refund", Status: status, Money: recon.Money{Minor: 450, Currency: "EUR"},
		Parent: "ch_1", Account: testAccount, Mode: "live", CreatedAt: at,
	}
}

// lists makes the source one that lists effects, of which there are none yet.
func (s *stand) lists() *listed {
	all := &listed{name: testSource, sheet: s.sweep.Source.Sheet(), page: 10}
	all.places = all.sheet.Accounts
	s.sweep.Source = all
	return all
}

// one gives the only finding of a kind, in whatever state.
func (s *stand) one(kind recon.FindingKind) recon.Finding {
	s.Helper()
	rows := s.findings(kind)
	if len(rows) != 1 {
		s.Fatalf("%d findings %s: %+v", len(rows), kind, rows)
	}
	return rows[0].Finding
}

func TestWhatKeepsFailingIsOverWhenNothingFailedForAMonth(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	for n := range 3 {
		e := refundAt(fmt.Sprintf("re_%d", n), recon.EffectFailed, monday.Add(time.Duration(n)*24*time.Hour))
		e.Target = "order:9"
		all.effects = append(all.effects, e)
	}
	s.pass(3 * 24 * time.Hour)
	s.audit(s.since())
	if f := s.one(recon.FindFailing); !f.Open() {
		t.Fatalf("it failed three times: %+v", f)
	}
	s.pass(27 * 24 * time.Hour)
	s.audit(recon.Window{From: s.now().Add(-24 * time.Hour)}) // none of it is in the window
	if f := s.one(recon.FindFailing); !f.Open() {
		t.Fatalf("the last time was 28 days ago: %+v", f)
	}
	s.pass(3 * 24 * time.Hour)
	r := s.audit(recon.Window{From: s.now().Add(-24 * time.Hour)})
	if f := s.one(recon.FindFailing); f.State != recon.FindingEnded || len(r.Findings) != 0 {
		t.Fatalf("nothing failed for 31 days: %+v, told %+v", f, r.Findings)
	}
	again := refundAt("re_3", recon.EffectFailed, s.now())
	again.Target = "order:9"
	all.effects = append(all.effects, again)
	s.pass(2 * time.Hour)
	s.audit(recon.Window{From: s.now().Add(-24 * time.Hour)})
	if f := s.one(recon.FindFailing); !f.Open() {
		t.Errorf("it failed again: %+v", f)
	}
}

func TestAParentsTotalIsOverWhenItFitsWhereverItStands(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	first, second := refundAt("re_1", recon.Completed, monday), refundAt("re_2", recon.Completed, monday.Add(time.Minute))
	both := int64(900)
	first.ParentTotal = &both
	all.effects = append(all.effects, first)
	s.pass(3 * time.Hour)
	s.audit(s.since())
	if f := s.one(recon.FindMismatch); !f.Open() || len(f.Operations) != 0 {
		t.Fatalf("the other half is not seen: %+v", f)
	}
	s.pass(40 * 24 * time.Hour)
	s.audit(recon.Window{From: s.now().Add(-24 * time.Hour)})
	if f := s.one(recon.FindMismatch); !f.Open() {
		t.Fatalf("it still differs, though it is long ago: %+v", f)
	}
	all.effects = append(all.effects, second)
	s.audit(s.since())
	if f := s.one(recon.FindMismatch); f.State != recon.FindingEnded {
		t.Errorf("both halves are seen: %+v", f)
	}
}

// A total that nobody tells any more fits nothing: whoever may not read charges any longer,
// say, did not see that all is well.
func TestAParentsTotalIsNotOverWhenNobodyTellsIt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	one := refundAt("re_1", recon.Completed, monday)
	both := int64(900)
	one.ParentTotal = &both
	all.effects = append(all.effects, one)
	s.pass(3 * time.Hour)
	s.audit(s.since())
	all.effects[0].ParentTotal = nil
	s.audit(s.since())
	if f := s.one(recon.FindMismatch); !f.Open() {
		t.Fatalf("the total was not seen: %+v", f)
	}
	all.effects[0].ParentTotal = &one.Money.Minor
	s.audit(s.since())
	if f := s.one(recon.FindMismatch); f.State != recon.FindingEnded {
		t.Errorf("the total fits: %+v", f)
	}
}

// What still differs with other effects is another finding; the old one is over.
func TestAParentsTotalThatDiffersOtherwiseIsToldAnew(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	first, second := refundAt("re_1", recon.Completed, monday), refundAt("re_2", recon.Completed, monday.Add(time.Minute))
	total := int64(2000)
	first.ParentTotal = &total
	all.effects = append(all.effects, first)
	s.pass(3 * time.Hour)
	s.audit(s.since())
	all.effects = append(all.effects, second)
	s.audit(s.since())
	states := map[recon.FindingState]int{}
	for _, f := range s.findings(recon.FindMismatch) {
		states[f.State]++
	}
	if states[recon.FindingEnded] != 1 || states[recon.FindingOpen] != 1 {
		t.Errorf("findings: %v", states)
	}
}
