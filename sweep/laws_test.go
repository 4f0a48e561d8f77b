package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// essence is what a ledger says, without the names and times of looks.
func (s *stand) essence() []string {
	s.Helper()
	var all []string
	for _, sql := range []string{
		`SELECT concat_ws(' ', 'operation', operation_id, state, effect_id, released, lease_token) FROM reconciler.operations ORDER BY 1`,
		`SELECT concat_ws(' ', 'check', operation_id, closed, looks, absent_looks, failures) FROM reconciler.checks ORDER BY 1`,
		`SELECT concat_ws(' ', 'effect', id, status, amount, owner) FROM reconciler.effects ORDER BY 1`,
		`SELECT concat_ws(' ', 'match', effect_id, operation_id, basis, role) FROM reconciler.matches ORDER BY 1`,
		`SELECT concat_ws(' ', 'finding', fingerprint, kind, state, planned_version <> version) FROM reconciler.findings ORDER BY 1`,
		`SELECT concat_ws(' ', 'journal', operation_id, seq, kind) FROM reconciler.journal ORDER BY 1`,
	} {
		all = append(all, s.rows(sql)...)
	}
	return all
}

// busy fills a ledger with operations of every fate, and lets them become due.
func (s *stand) busy() {
	s.Helper()
	s.sweep.batch = 3
	for n := range 8 {
		i := refund(n)
		key := s.lose(i)
		switch n % 4 {
		case 0:
			s.happen(i, key)
		case 1: // another amount: a person must look
			i.amount++
			s.happen(i, key)
		case 2:
			r := s.happen(i, key)
			if err := s.stripe.TurnRefund(r, stripetest.Turn{Status: "failed", Reason: "declined"}); err != nil {
				s.Fatal(err)
			}
		}
	}
	s.open(refund(8))
	s.claim(refund(8)) // and its process dies
	s.pass(10 * time.Minute)
}

func TestADryRunTellsTheSameAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.busy()
	s.exec(`UPDATE reconciler.operations SET lease_until = lease_until + interval '1 hour' WHERE state = 'in_progress'`)
	before := s.everything()
	real := s.sweep.Ledger
	s.sweep.Ledger = NewDry(s.ledger)
	dry := s.run()
	if diff := cmp.Diff(before, s.everything()); diff != "" {
		t.Fatalf("the dry run changed the ledger (-before +after):\n%s", diff)
	}
	s.sweep.Ledger, s.sweep.Source = real, s.client() // a client remembers how densely refunds lie
	wet := s.run()
	dry.RunID, dry.DurationMS, wet.RunID, wet.DurationMS = "", 0, "", 0
	if diff := cmp.Diff(wet, dry); diff != "" {
		t.Errorf("the dry run told something else (-real +dry):\n%s", diff)
	}
	if wet.Succeeded == 0 || wet.ManualReview == 0 {
		t.Errorf("nothing to compare: %+v", wet)
	}
}

func TestARunStopsBeforeTheBatchThatWouldPassItsLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.sweep.batch, s.sweep.Changes = 2, 3
	for n := range 6 {
		i := refund(n)
		wrong := i
		wrong.amount += 5
		s.happen(wrong, s.lose(i))
	}
	s.pass(10 * time.Minute)
	out, err := s.sweep.Run(t.Context(), Options{Now: s.now})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Changed != 2 || limit.Next != 2 || limit.Limit != 3 {
		t.Fatalf("err %v", err)
	}
	if out.ManualReview != 2 || out.Claimed != 2 {
		t.Errorf("outcome %+v", out)
	}
	var review int
	for n := range 6 {
		if s.story(refund(n)).Operation.State == recon.ManualReview {
			review++
		}
	}
	if review != 2 {
		t.Errorf("%d operations were changed, want 2", review)
	}
	if runs, err := s.ledger.LastRuns(t.Context(), "sweep/"+string(testSource), 1); err != nil || runs[0].Outcome != ledger.RunFailed || !strings.Contains(runs[0].Error, "limit of 3") {
		t.Errorf("run %+v, %v", runs, err)
	}
}

func TestReleasesCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) {
		p.Repeat, p.OnAbsent, p.Absence = recon.RepeatSameKey, recon.AbsentRelease, recon.AbsencePolicy{Looks: 1}
	})
	s.sweep.batch, s.sweep.Changes = 1, 2
	for n := range 3 {
		s.lose(refund(n))
	}
	s.pass(10 * time.Minute)
	out, err := s.sweep.Run(t.Context(), Options{Now: s.now})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Changed != 2 || out.Released != 2 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	s.wantState(refund(2), recon.Unknown)
}

func TestProvenSuccessesPassTheLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.sweep.batch, s.sweep.Changes = 2, 1
	for n := range 5 {
		s.happen(refund(n), s.lose(refund(n)))
	}
	s.pass(10 * time.Minute)
	if out := s.run(); out.Succeeded != 5 {
		t.Errorf("outcome %+v", out)
	}
}

func TestAnotherWriterWasFirst(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Repeat = recon.RepeatSameKey })
	i := refund(1)
	s.happen(i, s.lose(i))
	s.pass(10 * time.Minute)
	var token string
	s.sweep.after = func(step string) error {
		if step == "ask" {
			token, _ = s.claim(i) // its agent asks again while we judge
		}
		return nil
	}
	if out := s.run(); out.Lost != 1 || out.Claimed != 1 {
		t.Errorf("outcome %+v", out)
	}
	s.wantState(i, recon.InProgress)
	s.sweep.after = nil
	s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "indeterminate"})
	s.pass(2 * time.Minute)
	s.run()
	s.wantState(i, recon.Succeeded)
}

func TestAnotherIdeaOfTimeTakesNoLeaseAway(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	s.open(i)
	token, _ := s.claim(i)
	s.pass(5 * time.Second)
	tomorrow := func() time.Time { return s.now().Add(24 * time.Hour) }
	out, err := s.sweep.Run(t.Context(), Options{Now: tomorrow})
	if err != nil || out.Claimed != 1 || out.Lost != 1 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	s.wantState(i, recon.InProgress)
	finished := s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "refused"})
	if finished["applied"] != true || finished["state"] != "failed" {
		t.Errorf("the holder's answer: %v", finished)
	}
}

func TestWhatAnotherOperationOwnsIsNotAbsentForWhomItNames(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Repeat, p.OnAbsent = recon.RepeatSameKey, recon.AbsentRelease })
	i, other := refund(1), refund(2)
	s.lose(i)
	r := s.happen(i, "") // it bears our reference, and the sender of another operation says it is its own
	s.open(other)
	token, _ := s.claim(other)
	s.call("finish_attempt", map[string]any{"operation_id": other.id, "token": token, "class": "accepted", "effect_id": r.ID})
	hide := func(i intent, until time.Duration) {
		s.exec(`UPDATE reconciler.checks SET next_check = $1 WHERE operation_id = $2`, s.now().Add(until), i.id)
	}
	hide(i, 10*time.Minute)
	s.pass(6 * time.Minute)
	s.run()
	s.wantState(other, recon.ManualReview)
	for range 12 {
		s.pass(15 * time.Minute)
		hide(i, 0)
		s.run()
	}
	s.wantState(i, recon.Unknown)
	if rows := s.findings(recon.FindUnresolved); len(rows) != 1 || !strings.Contains(rows[0].Reason, r.ID) {
		t.Errorf("findings %+v, want one that names %s", rows, r.ID)
	}
}

func TestAJudgementThatFailsSetsOnlyItsOperationAside(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	bad, good := refund(1), refund(2)
	s.happen(bad, s.lose(bad))
	s.happen(good, s.lose(good))
	s.sweep.decide = func(c recon.Case, now time.Time) recon.Decision {
		if c.Operation.ID == recon.OperationID(bad.id) {
			panic("nil map")
		}
		return recon.Decision{Operation: c.Operation.ID, Rule: "test", Reason: "test", From: c.Operation.State, To: recon.Succeeded}
	}
	for try := range 6 {
		s.pass(24 * time.Hour)
		out := s.run()
		if out.SetAside != 1 || try == 0 && out.Succeeded != 1 {
			t.Errorf("try %d: outcome %+v", try, out)
		}
	}
	s.wantState(good, recon.Succeeded)
	story := s.wantState(bad, recon.Unknown)
	if story.Check.Failures < 5 || len(story.Findings) != 1 || !strings.Contains(story.Findings[0].Reason, "nil map") {
		t.Errorf("failures %d, findings %+v", story.Check.Failures, story.Findings)
	}
}

func TestADecisionWithoutANextCheckIsSetAside(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.lose(refund(1))
	judged := 0
	s.sweep.decide = func(c recon.Case, now time.Time) recon.Decision {
		if judged++; judged > 1 {
			t.Error("it is due again in the same run")
			c.Check.Next = now.Add(time.Hour)
		}
		return recon.Decision{Operation: c.Operation.ID, Rule: "test", From: c.Operation.State, To: c.Operation.State, Check: c.Check}
	}
	s.pass(10 * time.Minute)
	if out := s.run(); out.SetAside != 1 {
		t.Errorf("outcome %+v", out)
	}
	if story := s.story(refund(1)); !story.Check.Next.After(s.now()) {
		t.Errorf("it is due again at once: %v", story.Check.Next)
	}
}

func TestB20_WhatAListNeverReachedIsNeverMissing(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Absence = recon.AbsencePolicy{Looks: 1} })
	lost, claimed := refund(1), refund(2)
	lost.charge, claimed.charge = "", "" // nothing to look them up by but the list
	s.lose(lost)
	s.open(claimed)
	token, _ := s.claim(claimed)
	s.call("finish_attempt", map[string]any{"operation_id": claimed.id, "token": token, "class": "succeeded", "effect_id": "re_gone"})
	s.exec(`UPDATE reconciler.operations SET effect_id = NULL WHERE operation_id = $1`, claimed.id)
	s.pass(time.Minute)
	for n := range 120 { // more than a page of others'
		s.happen(refund(100+n), "")
	}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Page: 2, Times: stripetest.Always})
	passes := func(hours int) {
		for range hours {
			s.pass(time.Hour)
			s.run()
			if out, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
				t.Fatalf("%+v, %v", out, err)
			}
		}
	}
	passes(30)
	s.wantState(lost, recon.Unknown)
	s.wantState(claimed, recon.Succeeded)
	if rows := s.findings(recon.FindMissing); len(rows) != 0 {
		t.Errorf("missing in a list that was never read to its end: %+v", rows)
	}
	s.stripe.ClearFaults()
	passes(24)
	s.wantState(lost, recon.ManualReview)
	s.wantState(claimed, recon.ManualReview)
	if rows := s.findings(recon.FindMissing); len(rows) != 2 {
		t.Errorf("once the list is whole: %+v, want both missing", rows)
	}
}

func TestB106_GivenUpAndConfirmedInTheNextNightIsClosed(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.GiveUpAfter = recon.Duration(24 * time.Hour) })
	i := refund(1)
	key := s.lose(i)
	s.strange("re_like", i.charge, i.amount, s.now(), nil) // could be the one, so that nothing counts as absent
	s.pass(24*time.Hour + time.Minute)
	s.run()
	s.wantState(i, recon.ManualReview)
	s.pass(2 * time.Hour)
	s.happen(i, key)
	s.pass(24 * time.Hour) // what waits for a person is looked at daily
	s.run()
	s.wantState(i, recon.Succeeded)
	for _, f := range s.findings() {
		if f.State != recon.FindingEnded {
			t.Errorf("still open: %+v", f.Finding)
		}
	}
}

func TestOneListAnswersForEveryBatchOfARun(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const operations = 60
	s.sweep.batch = 10
	for n := range operations {
		i := refund(n)
		i.charge = "" // nothing to look it up by but a list of the window
		key := s.lose(i)
		if n%2 == 0 {
			s.happen(i, key)
		}
	}
	s.pass(10 * time.Minute)
	s.stripe.ResetCalls()
	if out := s.run(); out.Succeeded != operations/2 || out.Kept != operations/2 {
		t.Fatalf("outcome %+v", out)
	}
	if lists := s.stripe.Counts()["GET /v1/refunds"]; lists > 1 {
		t.Errorf("30 refunds in the window were listed %d times: %v", lists, s.stripe.Counts())
	}
}

// Where no key was sent a failed effect may have a brother that is still under way.
func TestAFailedEffectEndsNothingYetWhereItsKeyWasNotSent(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Marks = []recon.Mark{recon.MarkReference} })
	i := refund(1)
	s.lose(i)
	declined := s.happen(i, "")
	if err := s.stripe.TurnRefund(declined, stripetest.Turn{Status: "failed", Reason: "declined"}); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Minute)
	if out := s.run(); out.Kept != 1 {
		t.Errorf("outcome %+v", out)
	}
	s.wantState(i, recon.Unknown)
	made := s.happen(i, "")
	s.pass(10 * time.Minute)
	s.run()
	if story := s.wantState(i, recon.Succeeded); story.Operation.EffectID != made.ID {
		t.Errorf("closed with %q, want %s", story.Operation.EffectID, made.ID)
	}
}

// listedOnly are refunds that nothing finds but a list of the window, one batch each.
func (s *stand) listedOnly(n ...int) (list []intent) {
	s.Helper()
	s.sweep.batch = 1
	for _, n := range n {
		i := refund(n)
		i.charge = ""
		list = append(list, i)
	}
	return list
}

func TestAListThatFailedAnswersForNoLaterBatch(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, i := range s.listedOnly(1, 2) {
		s.happen(i, s.lose(i))
	}
	s.pass(10 * time.Minute)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.ServerError, Path: "/v1/refunds"})
	if out := s.run(); out.Blind != 1 || out.Succeeded != 1 {
		t.Errorf("outcome %+v, want the second one asked for: %v", out, s.stripe.Counts())
	}
}

// Such a list has shown something before it failed. Whoever's effect that was is closed by it,
// also where the source cannot be asked again, and names it.
func TestWhatAListShowedBeforeItFailedIsEvidenceForLaterBatches(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.sweep.Source = s.client(func(_ *stripe.Settings, o *stripe.Options) { o.PageSize = 1 })
	list := s.listedOnly(1, 2)
	var keys []string
	for _, i := range list {
		keys = append(keys, s.lose(i))
	}
	s.pass(10 * time.Minute)
	for n, i := range list {
		s.happen(i, keys[n])
		s.pass(2 * time.Second)
	}
	s.stripe.Script(stripetest.Fault{Path: "/v1/refunds", Nth: 2, Times: stripetest.Always, Kind: stripetest.ServerError})
	behind := func() time.Time { return s.now().Add(-4 * time.Minute) } // so that the first page is dated later, and kept
	if _, err := s.sweep.Run(t.Context(), Options{Now: behind}); err != nil {
		t.Fatal(err)
	}
	s.wantState(list[0], recon.Unknown)
	story := s.wantState(list[1], recon.Succeeded)
	if len(story.Looks) != 1 || story.Looks[0].Method != recon.ByList {
		t.Errorf("closed by %+v, want the list that showed it", story.Looks)
	}
	if seen := s.rows(`SELECT method FROM reconciler.looks l JOIN reconciler.matches m USING (tenant, look_id)`); !slices.Equal(seen, []string{"list"}) {
		t.Errorf("linked by %v, want the list", seen)
	}
}

func TestAListAnswersOnlyForWhatItCouldShow(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	list := s.listedOnly(1, 2)
	old, young := list[0], list[1]
	s.lose(old)
	s.pass(9*time.Minute + 30*time.Second)
	key := s.lose(young)
	s.pass(30 * time.Second)
	s.sweep.after = func(step string) error {
		if step == "record" && key != "" { // the first batch is done
			s.happen(young, key) // the request was still working
			key = ""
		}
		return nil
	}
	if out := s.run(); out.Claimed != 2 {
		t.Fatalf("outcome %+v", out)
	}
	s.wantState(young, recon.Succeeded)
}

// A list of creations shows what came to be in a window, and an effect whose id is known
// may be older, or newer than the list.
func TestAnEffectWhoseIdIsKnownIsReadAlsoAfterAListOfItsTime(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Absence = recon.AbsencePolicy{Looks: 1} })
	listed, known := s.listedOnly(1)[0], refund(2)
	before := s.strange("re_before", known.charge, known.amount, monday.Add(-24*time.Hour), nil)
	s.lose(listed)
	s.open(known)
	token, _ := s.claim(known)
	s.call("finish_attempt", map[string]any{"operation_id": known.id, "token": token, "class": "accepted", "effect_id": before.ID})
	s.pass(10 * time.Minute)
	out := s.run()
	if lists := s.stripe.Counts()["GET /v1/refunds"]; lists != 1 || out.Claimed != 2 {
		t.Fatalf("the window was listed %d times: %+v, %v", lists, out, s.stripe.Counts())
	}
	s.wantState(listed, recon.ManualReview)
	s.wantState(known, recon.Succeeded)
	if rows := s.findings(recon.FindMissing); len(rows) != 1 || rows[0].Operations[0] != recon.OperationID(listed.id) {
		t.Errorf("missing: %+v, want only what the list could have shown", rows)
	}
}

func TestStoredEffectsConcludeWithoutAQuestion(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	first, second := refund(1), refund(2)
	first.charge, second.charge = "", ""
	s.happen(first, s.lose(first))
	s.open(second)
	token, key := s.claim(second)
	made := s.happen(second, key) // listed together with the first, while its call still runs
	s.pass(50 * time.Second)
	s.run()
	s.wantState(first, recon.Succeeded)
	s.pass(5 * time.Minute)
	s.run() // its lease is over: unknown, to be looked at after 30 s
	s.pass(time.Minute)
	s.stripe.ResetCalls()
	out := s.run()
	if out.Succeeded != 1 || out.ProviderCalls != 0 || len(s.stripe.Calls()) != 0 {
		t.Errorf("outcome %+v, calls %v", out, s.stripe.Counts())
	}
	story := s.wantState(second, recon.Succeeded)
	if story.Operation.EffectID != made.ID {
		t.Errorf("closed with %s, want %s", story.Operation.EffectID, made.ID)
	}
	if len(story.Looks) == 0 {
		t.Error("the journal names no evidence")
	}
	if late := s.call("finish_attempt", map[string]any{"operation_id": second.id, "token": token, "class": "refused"}); late["applied"] != false {
		t.Errorf("the late finish was applied: %v", late)
	}
}

func TestAnEndedContextGivesThePlaceBack(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.lose(refund(1))
	s.pass(10 * time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	s.sweep.after = func(step string) error {
		if step == "due" {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := s.sweep.Run(ctx, Options{Now: s.now}); !errors.Is(err, context.Canceled) {
		t.Fatalf("err %v", err)
	}
	s.sweep.after = nil
	if out := s.run(); out.Claimed != 1 {
		t.Errorf("outcome %+v", out)
	}
}

// oneRow is a file of one effect.
type oneRow struct {
	effect recon.Effect
	given  bool
}

func (f *oneRow) Next(line *ledger.EffectLine) bool {
	given := f.given
	f.given, *line = true, ledger.EffectLine{Line: 2, Effect: f.effect}
	return !given
}

func (f *oneRow) Err() error { return nil }

// A bank's answer named PAY-1; its statement shows the transfer by our reference under another
// id. Nobody can be asked for PAY-1: a complete statement is all that there will ever be.
func TestAStatementThatNamesAnotherEffectIsAMismatch(t *testing.T) {
	t.Parallel()
	for class, state := range map[string]recon.State{"accepted": recon.Unknown, "succeeded": recon.Succeeded} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			bank, err := files.New(testSource, files.Settings{
				System: "bank", Account: testAccount, Mode: "live", Format: "own", Kind: "refund", Unit: "minor", Currency: "EUR", Zone: "UTC",
				Lag: recon.Duration(24 * time.Hour), Columns: files.Columns{ID: "id", CreatedAt: "at", Amount: "amount", Reference: "reference"},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := newStand(t, func(p *recon.Policy) {
				sheet := bank.Sheet()
				p.System, p.Accounts, p.Marker, p.KeyLifetime, p.RepeatAnswer = sheet.System, sheet.Accounts, sheet.Marker, sheet.KeyLifetime, sheet.RepeatAnswer
			})
			s.sweep.Source = bank
			i := refund(1)
			s.open(i)
			token, _ := s.claim(i)
			s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": class, "effect_id": "PAY-1"})
			s.wantState(i, state)
			sentAt := s.now()
			s.pass(3 * 24 * time.Hour)
			if _, err := s.ledger.ImportEffects(t.Context(), ledger.EffectImport{
				Source: testSource, System: "bank", Name: "statement.csv", Sources: []recon.SourceName{testSource}, Now: s.now(),
				File: &oneRow{effect: recon.Effect{
					ID: "STMT-77", Source: testSource, System: "bank", Kind: "refund", Status: recon.Completed, Reference: i.id,
					Money: recon.Money{Minor: i.amount, Currency: "EUR"}, Account: testAccount, Mode: "live", CreatedAt: sentAt,
				}},
				Complete: ledger.Completeness{
					Window: recon.Window{From: sentAt.Add(-24 * time.Hour), To: sentAt.Add(48 * time.Hour)},
					Places: []ledger.Place{{Kind: "refund", Account: testAccount, Mode: "live"}},
				},
			}); err != nil {
				t.Fatal(err)
			}
			s.run()
			if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
				t.Fatal(err)
			}
			s.wantState(i, recon.ManualReview)
			if len(s.findings(recon.FindMismatch)) != 1 {
				t.Errorf("findings are %+v", s.findings())
			}
		})
	}
}
