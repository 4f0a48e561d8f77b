package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

type classes = map[rules.Class]int

// since is the window from the stand's beginning to what is sure by now.
func (s *stand) since() recon.Window { return recon.Window{From: monday.Add(-time.Hour)} }

// strange makes a refund that no operation explains.
func (s *stand) strange(id, charge string, amount int64, at time.Time, metadata map[string]string) stripetest.Refund {
	s.Helper()
	r, err := s.stripe.AddRefund(stripetest.Refund{
		ID: id, Account: testAccount, Mode: "live", Charge: charge, Amount: amount, Currency: "eur", Created: at, Metadata: metadata,
	})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func TestB02_ARefundMadeByHandIsAnOrphanUntilAPersonSaysOtherwise(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.strange("re_B1", "ch_B", 1500, monday, nil)
	// The same amount under another charge: never attached by amount alone.
	s.lose(intent{id: "op_1", charge: "ch_C", amount: 1500})
	s.pass(3 * time.Hour)
	r := s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassUnresolved: 1}, classes{rules.ClassOrphan: 1})
	orphan := r.Findings[0]
	if orphan.Kind != recon.FindOrphan || orphan.ID == "" {
		t.Fatalf("findings: %+v", r.Findings)
	}
	for _, word := range []string{"15.00 EUR", "ch_B", "2026-03-02 09:00"} {
		if !strings.Contains(orphan.Reason, word) {
			t.Errorf("%q does not say %q", orphan.Reason, word)
		}
	}
	s.wantState(intent{id: "op_1"}, recon.Unknown)
	// A person says that it is not ours: it is counted as that, and not told again.
	s.exec(`UPDATE reconciler.findings SET state = 'settled', settled_as = 'ignore', settled_at = $1, settled_by = 'ana' WHERE kind = 'orphan'`, s.now())
	r = s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassUnresolved: 1}, classes{rules.ClassNotOurs: 1})
	for _, f := range r.Findings {
		if f.Kind == recon.FindOrphan {
			t.Errorf("told again: %+v", f)
		}
	}
}

func TestAnOrphanThatGetsItsOperationEnds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	s.strange("re_1", i.charge, i.amount, monday, map[string]string{testMarker: i.id})
	s.pass(3 * time.Hour)
	if r := s.audit(s.since()); len(r.Findings) != 1 || r.Findings[0].Kind != recon.FindOrphan {
		t.Fatalf("findings: %+v", r.Findings)
	}
	s.lose(i) // a ledger that was restored late
	s.pass(5 * time.Minute)
	r := s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 1})
	if len(r.Findings) != 0 {
		t.Errorf("findings: %+v", r.Findings)
	}
	if rows := s.findings(recon.FindOrphan); len(rows) != 1 || rows[0].State != recon.FindingEnded {
		t.Errorf("the orphan: %+v", rows)
	}
	s.wantState(i, recon.Succeeded)
}

func TestB19_AnObjectAtTheEdgeThatBecameVisibleLateIsFoundByTheNextAudit(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.pass(time.Hour)
	s.lose(refund(0))
	s.pass(2 * time.Hour)
	first := s.audit(recon.Window{})
	edge := s.now().Add(-time.Minute)
	if !first.Window.To.Equal(edge) {
		t.Fatalf("complete up to %s, want %s: now less the lag", first.Window.To, edge)
	}
	// Stamped before the first audit's end, and visible only now; two of one second.
	s.strange("re_late", "ch_1", 100, edge.Add(-time.Second), nil)
	s.strange("re_edge1", "ch_2", 100, edge, nil)
	s.strange("re_edge2", "ch_3", 100, edge, nil)
	s.pass(24 * time.Hour)
	second := s.audit(recon.Window{})
	if !second.Window.From.Before(edge.Add(-5 * time.Minute)) {
		t.Errorf("the second window begins at %s and does not overlap the first, which ended at %s", second.Window.From, edge)
	}
	if got := second.Classes.Effects[rules.ClassOrphan]; got != 3 {
		t.Errorf("%d orphans, want all 3: %+v", got, second.Findings)
	}
	if got := s.rows(`SELECT to_char(complete_to AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM reconciler.audit_lists`); got[0] > s.now().Add(-time.Minute).Format(time.DateTime) {
		t.Errorf("complete up to %s, and the provider shows what is a minute old only", got)
	}
}

func TestB20_AListThatBrokeOffGoesOnAtItsCursorAndFlagsNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	for n := range 60 {
		i := refund(n)
		s.open(i)
		token, _ := s.claim(i)
		s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": fmt.Sprintf("re_%d", n)})
		all.effects = append(all.effects, recon.Effect{
			ID: fmt.Sprintf("re_%d", n), Source: testSource, System: string(testSource), Kind: "refund", Status: recon.Completed,
			Money: recon.Money{Minor: i.amount, Currency: "EUR"}, Parent: i.charge, Reference: i.id, Account: testAccount, Mode: "live",
			CreatedAt: monday.Add(time.Duration(n) * time.Second),
		})
	}
	s.pass(time.Hour)
	all.fail = func(page int) string { // pages 1 to 3 are read, and then it is too much
		if page > 3 {
			return string(sources.RateLimited)
		}
		return ""
	}
	r := s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassMatched: 30, rules.ClassUnseen: 30}, classes{rules.ClassMatched: 30})
	if len(r.Findings) != 0 || len(r.Unseen) != 1 || !strings.Contains(r.Unseen[0].Why, recon.FaultText(string(sources.RateLimited))) {
		t.Fatalf("findings %+v, unseen %+v", r.Findings, r.Unseen)
	}
	if got := s.rows(`SELECT count(*)::text FROM reconciler.coverage`); got[0] != "0" {
		t.Errorf("%s ranges count as seen", got[0])
	}
	all.fail, all.asked = nil, 0
	r = s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassMatched: 60}, classes{rules.ClassMatched: 60})
	if len(r.Unseen) != 0 {
		t.Errorf("unseen: %+v", r.Unseen)
	}
	if all.asked != 3 { // pages 4 to 6; the rest of the time was empty and stands on no page of its own
		t.Logf("%d pages were asked for", all.asked)
	}
	if all.asked >= 6 {
		t.Errorf("%d pages were asked for: the list began anew", all.asked)
	}
}

// The same at Stripe, over HTTP, at a time that the ledger cannot hold to its last digit.
func TestB20_AListAtStripeGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for n := range 250 {
		s.strange(fmt.Sprintf("re_%03d", n), "ch_x", 100, monday.Add(-time.Duration(n)*time.Second), nil)
	}
	s.pass(3 * time.Hour)
	options := AuditOptions{Now: func() time.Time { return s.now().Add(123) }, Window: recon.Window{From: monday.Add(-time.Hour)}}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Page: 3, Times: stripetest.Always})
	first, err := s.auditor().Run(t.Context(), options)
	if err != nil || len(first.Unseen) != 1 || first.Classes.Effects[rules.ClassOrphan] != 200 {
		t.Fatalf("%+v, %v", first.Classes.Effects, err)
	}
	s.stripe.ClearFaults()
	s.sweep.Source = s.client() // another process
	second, err := s.auditor().Run(t.Context(), options)
	if err != nil || len(second.Unseen) != 0 || second.Classes.Effects[rules.ClassOrphan] != 250 {
		t.Fatalf("%+v, unseen %+v, %v", second.Classes.Effects, second.Unseen, err)
	}
	if calls := second.Runs[0].ProviderCalls; calls > 2 { // the third page, and who is asked
		t.Errorf("%d requests: the list began anew", calls)
	}
	s.exec(`UPDATE reconciler.audit_lists SET window_from = $1, window_to = $2, cursor = 'of another program', began_at = $2`, monday.Add(-time.Hour), s.now())
	if third := s.audit(s.since()); len(third.Unseen) != 0 || third.Classes.Effects[rules.ClassOrphan] != 250 {
		t.Errorf("after a cursor that nobody can read: %+v, unseen %+v", third.Classes.Effects, third.Unseen)
	}
}

// A provider that shows late what exists: a look at it is as old as its first page.
func TestB20_WhileAListIsReadNothingComesNearerToBeingMissing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const lag = 30 * time.Minute
	s.sweep.Source = s.client(func(set *stripe.Settings, _ *stripe.Options) { set.Lag = recon.Duration(lag) })
	for n := range 150 { // two pages
		s.strange(fmt.Sprintf("re_%03d", n), "ch_x", 100, monday.Add(-time.Duration(n)*time.Second), nil)
	}
	i := refund(1)
	s.open(i)
	s.pass(lag + 5*time.Minute)
	token, _ := s.claim(i)
	s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": "re_slow"})
	s.pass(lag / 2) // not yet long enough for anybody to see it
	slow := true
	s.sweep.after = func(step string) error {
		if slow && step == "page" {
			s.pass(2 * lag)
		}
		return nil
	}
	r := s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassNotYet: 1}, classes{rules.ClassOrphan: 150})
	s.wantState(i, recon.Succeeded)
	if rows := s.findings(recon.FindMissing); len(rows) != 0 {
		t.Errorf("missing in a list that began before the provider could show it: %+v", rows)
	}
	slow = false
	s.audit(s.since())
	s.wantState(i, recon.ManualReview)
	if rows := s.findings(recon.FindMissing); len(rows) != 1 {
		t.Errorf("in a list that began after: %+v, want it missing", rows)
	}
}

func TestB20_AQuietSourceWithOperationsIsUnseenAndNotEmpty(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for n := range 3 {
		i := refund(n)
		s.open(i)
		token, _ := s.claim(i)
		s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": fmt.Sprintf("re_%d", n)})
	}
	s.pass(3 * time.Hour)
	r := s.audit(s.since())
	wantClasses(t, r, classes{rules.ClassUnseen: 3}, nil)
	if len(r.Findings) != 0 || len(r.Unseen) != 1 || r.Unseen[0].Why != "empty" {
		t.Errorf("findings %+v, unseen %+v", r.Findings, r.Unseen)
	}
	s.wantState(refund(0), recon.Succeeded)
}

func TestTwoAuditsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.lose(refund(1))
	s.pass(time.Hour)
	other := &Audit{Sweep: &Sweep{Ledger: s.ledger, Source: s.client(), Holder: "other/2"}, Accounts: s.ledger, Policies: []recon.Policy{s.policy}}
	var second error
	s.sweep.after = func(step string) error {
		if step == "list" {
			_, second = other.Run(t.Context(), AuditOptions{Now: s.now})
		}
		return nil
	}
	s.audit(s.since())
	var running *ledger.RunningError
	if !errors.As(second, &running) || running.By != "test/1" {
		t.Errorf("the second audit: %v", second)
	}
}

func TestAWindowThatEndsInTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	_, err := s.auditor().Run(t.Context(), AuditOptions{Now: s.now, Window: recon.Window{To: s.now().Add(time.Second)}})
	var window *WindowError
	if !errors.As(err, &window) {
		t.Errorf("%v", err)
	}
	if got := s.rows(`SELECT name FROM reconciler.runs`); len(got) != 0 {
		t.Errorf("runs: %v", got)
	}
}

func TestAFinishedAuditKeepsItsWholeResult(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.strange("re_1", "ch_1", 100, monday, nil)
	s.pass(3 * time.Hour)
	s.audit(s.since())
	got := s.rows(`SELECT concat_ws(' ', name, outcome, counts -> 'window' ->> 'zone', counts ->> 'effects', counts -> 'classes' -> 'effects' ->> 'orphan',
		counts -> 'findings' -> 0 ->> 'kind', jsonb_typeof(counts -> 'unseen'), counts -> 'classes' -> 'operations' ->> 'matched') FROM reconciler.runs`)
	want := []string{"audit/stripe-main done UTC 1 1 orphan array 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the run's row (-want +got):\n%s", diff)
	}
}

// mixed fills ledger and provider with pairs of every fate.
func (s *stand) mixed() {
	s.Helper()
	s.busy()
	s.sweep.batch = 3
	s.strange("re_orphan", "ch_x", 700, monday, nil)
	for n := 20; n < 24; n++ { // the agent knows
		i := refund(n)
		s.open(i)
		token, key := s.claim(i)
		r := s.happen(i, key)
		s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": r.ID})
	}
	twice := refund(30)
	s.happen(twice, s.lose(twice))
	s.happen(twice, "another key")
	for n, id := range []string{"op_a", "op_b"} { // one intent under two ids
		s.call("open_operation", map[string]any{"action": "refund.create", "target": "order:twice", "id": id, "amount": 500, "currency": "EUR",
			"parent": "ch_t", "request": map[string]any{"n": n}})
		token, key := s.claim(intent{id: id})
		r := s.happen(intent{id: id, charge: "ch_t", amount: 500}, key)
		s.call("finish_attempt", map[string]any{"operation_id": id, "token": token, "class": "succeeded", "effect_id": r.ID})
	}
	s.pass(3 * time.Hour)
}

// said is what a result tells, without ids and durations.
func said(r AuditResult) []string {
	list := []string{fmt.Sprint(r.Operations, r.Effects, r.Classes.Operations, r.Classes.Effects)}
	for _, f := range r.Findings {
		list = append(list, line(f.Kind, f.Certainty, f.Operations, f.EffectIDs))
	}
	for _, u := range r.Unseen {
		list = append(list, fmt.Sprint(u.Source, u.Why))
	}
	return list
}

func TestADryAuditTellsTheSameAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.mixed()
	s.exec(`UPDATE reconciler.operations SET lease_until = lease_until + interval '4 hours' WHERE state = 'in_progress'`)
	before := s.everything()
	dry, err := s.auditor().MakeDry(s.ledger).Run(t.Context(), AuditOptions{Now: s.now, Window: s.since()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.everything()); diff != "" {
		t.Fatalf("the dry run changed the ledger (-before +after):\n%s", diff)
	}
	s.sweep.Source = s.client()
	wet := s.audit(s.since())
	if diff := cmp.Diff(said(wet), said(dry)); diff != "" {
		t.Errorf("the dry run tells something else (-real +dry):\n%s", diff)
	}
}

// The database counts plain operations by itself; the rules say the same of them.
func TestTheShortCutPastTheRulesChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.mixed()
	long := s.auditor()
	long.all = true

	want, err := long.Run(t.Context(), AuditOptions{Now: s.now, Window: s.since()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.ledger.AuditOperations(t.Context(), ledger.AuditScope{Source: testSource, Window: recon.Window{From: monday.Add(-time.Hour), To: s.now()}}, "", 1000)
	if err != nil || c.Plain < 4 || len(c.Odd) == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	got := s.audit(s.since())
	if diff := cmp.Diff(said(want), said(got)); diff != "" {
		t.Errorf("with the short cut (-judged +counted):\n%s", diff)
	}
}

func TestASourceThatCannotBeListedIsUnseenUnlessAnImportCoversIt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.sweep.Source = unlisted{sheet: recon.Sheet{System: string(testSource), Kinds: []string{"refund"}, Accounts: []recon.Account{{Account: testAccount, Mode: "live"}}}}
	for n := range 2 {
		i := refund(n)
		s.open(i)
		token, _ := s.claim(i)
		s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": fmt.Sprintf("re_%d", n)})
	}
	s.exec(`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, reference, created_at, first_seen_at, seen_at)
		VALUES ('default', $1, 'acct_1', 'live', 're_0', $1, 'refund', 'completed', 1000, 'EUR', 'op_0000', $2, $2, $2)`, string(testSource), monday)
	s.pass(3 * time.Hour)
	r := s.audit(recon.Window{})
	// What events and files brought counts all the same; the rest is not missing.
	wantClasses(t, r, classes{rules.ClassMatched: 1, rules.ClassUnseen: 1}, classes{rules.ClassMatched: 1})
	if len(r.Unseen) != 1 || len(r.Findings) != 0 || !strings.Contains(r.Unseen[0].Why, "cannot be listed") {
		t.Errorf("unseen %+v, findings %+v", r.Unseen, r.Findings)
	}
	s.exec(`INSERT INTO reconciler.coverage (tenant, look_id, source, kind, account, mode, window_from, window_to, at)
		VALUES ('default', 'file', $1, 'refund', 'acct_1', 'live', $2, $3, $3)`, string(testSource), monday.Add(-24*time.Hour), s.now())
	r = s.audit(recon.Window{From: monday.Add(-time.Hour), To: s.now().Add(-time.Hour)})
	wantClasses(t, r, classes{rules.ClassMatched: 1, rules.ClassMissing: 1}, classes{rules.ClassMatched: 1})
	if len(r.Unseen) != 0 || len(r.Findings) != 1 || r.Findings[0].Kind != recon.FindMissing {
		t.Errorf("unseen %+v, findings %+v", r.Unseen, r.Findings)
	}
}

func TestAnAuditStopsBeforeItChangesOrTellsMoreThanItMay(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for n := range 3 {
		i := refund(n)
		key := s.lose(i)
		i.amount++ // a person must look
		s.happen(i, key)
	}
	s.pass(3 * time.Hour)
	s.sweep.Changes = 2
	_, err := s.auditor().Run(t.Context(), AuditOptions{Now: s.now, Window: s.since()})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Next != 3 {
		t.Fatalf("%v", err)
	}
	s.wantState(refund(0), recon.Unknown)
	if got := s.rows(`SELECT outcome FROM reconciler.runs`); len(got) != 1 || got[0] != "failed" {
		t.Errorf("runs: %v", got)
	}
	for n := range 3 {
		s.strange(fmt.Sprintf("re_strange%d", n), "ch_x", 100, monday, nil)
	}
	s.exec(`DELETE FROM reconciler.audit_lists`)
	s.sweep.Changes = 3
	strangers := s.auditor()
	if _, err := strangers.Run(t.Context(), AuditOptions{Now: s.now, Window: s.since()}); err != nil {
		t.Fatal(err)
	}
	s.sweep.Changes = 2
	s.exec(`UPDATE reconciler.findings SET state = 'ended' WHERE kind = 'orphan'`)
	_, err = strangers.Run(t.Context(), AuditOptions{Now: s.now, Window: s.since()})
	var many *FindingsLimitError
	if !errors.As(err, &many) || many.Limit != 2 {
		t.Errorf("%v", err)
	}
}

// A settled finding does not come back while what was seen is the same, and does when it
// changes.
func TestWhatAPersonSettledIsToldAgainOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for n, id := range []string{"op_a", "op_b"} {
		s.call("open_operation", map[string]any{"action": "refund.create", "target": "order:twice", "id": id, "amount": 500, "currency": "EUR",
			"parent": "ch_t", "request": map[string]any{"n": n}})
		token, key := s.claim(intent{id: id})
		r := s.happen(intent{id: id, charge: "ch_t", amount: 500}, key)
		s.call("finish_attempt", map[string]any{"operation_id": id, "token": token, "class": "succeeded", "effect_id": r.ID})
	}
	s.pass(3 * time.Hour)
	suspected := func() int {
		n := 0
		for _, f := range s.audit(s.since()).Findings {
			if f.Certainty == recon.Suspected {
				n++
			}
		}
		return n
	}
	if got := suspected(); got != 1 {
		t.Fatalf("%d suspected duplicates, want 1", got)
	}
	if got := suspected(); got != 1 {
		t.Errorf("an open one is told %d times the next night, want 1", got)
	}
	s.exec(`UPDATE reconciler.findings SET state = 'settled', settled_as = 'accept', settled_at = $1, settled_by = 'ana' WHERE certainty = 'suspected'`, s.now())
	if got := suspected(); got != 0 {
		t.Errorf("a settled one is told %d times", got)
	}
	if got := s.rows(`SELECT state || ' ' || openings FROM reconciler.findings WHERE certainty = 'suspected'`); got[0] != "settled 1" {
		t.Errorf("the finding is %v", got)
	}
}

// An event told of a second effect. An audit whose list breaks off has looked for the known one
// no more than the event has; the next one sees that it is there, or is not.
func TestAnAuditTellsWhatASecondEffectIsOnceItHasLookedForTheKnown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		known string // the effect that the sender named; empty: the one that was made
		kind  recon.FindingKind
	}{"the known one is there": {"", recon.FindDuplicate}, "it is not": {"re_never", recon.FindMismatch}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			i := refund(1)
			second := h.second(i, tt.known)
			h.post2(h.event("evt_1", "refund.created", refundObject(i, second.ID, "succeeded", h.now())))
			h.take()
			h.pass(2 * time.Hour)
			h.stripe.Script(stripetest.Fault{Path: "/v1/refunds", Times: stripetest.Always, Kind: stripetest.ServerError})
			r := h.audit(recon.Window{})
			if len(r.Unseen) == 0 {
				t.Fatal("the list did not break off")
			}
			wantClasses(t, r, classes{rules.ClassUnseen: 1}, classes{rules.ClassNotYet: 1})
			h.wantState(i, recon.Succeeded)
			h.wantKinds()
			h.stripe.ClearFaults()
			h.pass(time.Hour)
			h.audit(recon.Window{})
			h.wantKinds(string(tt.kind))
		})
	}
}

// An old operation was imported, and its own effect with it by name alone. Its sender does it
// again, months later. An audit is the first to see that, and lists nothing of the time of the
// first one, which no look is due for any more.
func TestASecondEffectThatAnAuditIsTheFirstToSeeIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		there bool
		kind  recon.FindingKind
		state recon.State
	}{"the known one is there": {true, recon.FindDuplicate, recon.Succeeded}, "it is not": {false, recon.FindMismatch, recon.ManualReview}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			i, known := refund(1), "re_gone"
			if tt.there {
				known = h.happen(i, "key-1").ID
			}
			h.pass(200 * 24 * time.Hour)
			old, err := recon.MarshalOperation(recon.Operation{
				ID: recon.OperationID(i.id), Source: testSource, Action: "refund.create", Target: "order:" + i.id, Parent: i.charge, Key: "key-1", EffectID: known,
				Money: recon.Money{Minor: i.amount, Currency: "EUR"}, Account: testAccount, Mode: "live", State: recon.Succeeded, CreatedAt: monday, ClosedAt: monday,
			})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := h.ledger.Import(t.Context(), bytes.NewReader(append(bytes.TrimSpace(old), '\n')), h.now()); err != nil || r.Imported != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			h.happen(i, "key-2")
			h.pass(3 * time.Hour)
			r := h.audit(recon.Window{From: h.now().Add(-6 * time.Hour)})
			wantClasses(t, r, nil, classes{rules.ClassNotYet: 1})
			h.pass(time.Minute)
			h.run()
			h.reverify()
			h.wantState(i, tt.state)
			if told := h.findings(tt.kind); len(told) != 1 || len(told[0].Operations) != 1 {
				t.Errorf("told as %s: %+v", tt.kind, told)
			}
		})
	}
}
