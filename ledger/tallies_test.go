package ledger_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// tallied reads the tallies as text: name and labels to count.
func (w *world) tallied(ctx context.Context) map[string]int64 {
	s, err := w.led.Snapshot(ctx, t0)
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]int64{}
	for _, t := range s.Tallies {
		all[strings.Join(append([]string{t.Name}, t.Labels...), " ")] = t.N
	}
	return all
}

func (w *world) fold() {
	w.Helper()
	if err := w.led.FoldTallies(context.WithoutCancel(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// attempted claims and finishes.
func (w *world) attempted(id string, class recon.AttemptClass, code, effect string) {
	w.Helper()
	claim, err := w.led.Claim(w.Context(), ledger.ClaimRequest{OperationID: recon.OperationID(id), Holder: "w", LeaseSeconds: 20})
	if err != nil || !claim.Claimed {
		w.Fatalf("claim %s: %+v, %v", id, claim, err)
	}
	if _, err = w.led.Finish(w.Context(), ledger.FinishRequest{OperationID: recon.OperationID(id), Token: claim.Token,
		Class: class, EffectID: effect, ErrorCode: code}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) open(ids ...string) {
	w.Helper()
	for _, id := range ids {
		if _, err := w.led.OpenOperation(w.Context(), intent(id)); err != nil {
			w.Fatal(err)
		}
	}
}

func TestTalliesTellTheStoriesOfTheJournal(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	w.open("done", "refused", "slow", "reset", "lost", "status", "crash", "stored", "accepted")
	w.attempted("done", recon.ClassSucceeded, "", "re_1")
	w.attempted("refused", recon.ClassRefused, "card_declined", "")
	w.attempted("slow", recon.ClassIndeterminate, "read_timeout", "")
	w.attempted("reset", recon.ClassIndeterminate, "connection_reset", "")
	w.attempted("lost", recon.ClassIndeterminate, "no_answer", "")
	w.attempted("status", recon.ClassIndeterminate, "not_definite_503", "")
	w.attempted("stored", recon.ClassStoredError, "whatever ' an agent \" writes", "")
	w.attempted("accepted", recon.ClassAccepted, "", "re_2")
	if _, err := w.led.Claim(t.Context(), ledger.ClaimRequest{OperationID: "crash", Holder: "w", LeaseSeconds: 20}); err != nil {
		t.Fatal(err)
	}
	// Repeats: opened again, sent again after it was done, while in doubt, and too late.
	w.open("done")
	for _, id := range []recon.OperationID{"done", "refused", "stored", "crash"} {
		if c, err := w.led.Claim(t.Context(), ledger.ClaimRequest{OperationID: id, Holder: "x"}); err != nil || c.Claimed {
			t.Fatalf("claim %s: %+v, %v", id, c, err)
		}
	}
	now := t0.Add(25 * time.Hour)
	w.at(now)
	if c, err := w.led.Claim(t.Context(), ledger.ClaimRequest{OperationID: "slow", Holder: "x"}); err != nil || c.Claimed {
		t.Fatalf("claim after the key: %+v, %v", c, err)
	}
	if _, err := w.led.ExpireLeases(t.Context(), source, now, 10); err != nil {
		t.Fatal(err)
	}
	o := w.story("slow").Operation
	w.record(closing(w.hold(), now, o))
	w.importing(operationLine("old", `"state":"unknown"`))

	want := map[string]int64{
		"operations_opened stripe-main refund.create":                      10,
		"operations_became_unknown stripe-main refund.create timeout":      1,
		"operations_became_unknown stripe-main refund.create reset":        1,
		"operations_became_unknown stripe-main refund.create no_answer":    1,
		"operations_became_unknown stripe-main refund.create 5xx":          1,
		"operations_became_unknown stripe-main refund.create stored_error": 1,
		"operations_became_unknown stripe-main refund.create accepted":     1,
		"operations_became_unknown stripe-main refund.create lease_over":   1,
		"operations_became_unknown stripe-main refund.create import":       1,
		"operations_closed stripe-main refund.create succeeded attempt":    1,
		"operations_closed stripe-main refund.create failed attempt":       1,
		"operations_closed stripe-main refund.create succeeded evidence":   1,
		"confirmed_after_timeout":                                          1,
		"repeats_prevented existing":                                       1,
		"repeats_prevented succeeded":                                      1,
		"repeats_prevented in_doubt":                                       1,
		"repeats_prevented in_progress":                                    1,
		"repeats_prevented key_expired":                                    1,
		"retries_refused_after_key_expiry":                                 1,
	}
	diff(t, "counted live", want, w.tallied(t.Context()))
	w.fold()
	diff(t, "folded", want, w.tallied(t.Context()))
	if n := one[int](w, `SELECT count(*) FROM reconciler.repeats`); n != 0 {
		t.Errorf("%d repeats are left to fold", n)
	}
}

func TestFindingsAndReverificationsAreTallied(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	f := recon.Finding{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "no answer"}
	told := func(b ledger.Batch) {
		t.Helper()
		b.Now = t0
		w.record(b)
	}
	run := func(name, counts string) {
		t.Helper()
		r, err := w.led.BeginRun(t.Context(), ledger.RunStart{Name: name, Holder: "h", TTL: time.Minute})
		if err == nil {
			err = w.led.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: ledger.RunDone, Counts: []byte(counts)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(3) {
		told(ledger.Batch{Findings: []recon.Finding{f}})
		told(ledger.Batch{Findings: []recon.Finding{f}}) // seen again, not opened again
		told(ledger.Batch{Ends: []string{f.Fingerprint()}})
		run("reverify/stripe-main", `{"claimed": 9, "kept": 4, "blind": 2, "manual_review": 2, "failed": 1}`)
		run("sweep/stripe-main", `{"claimed": 9, "kept": 4, "blind": 5}`)
		for range 2 {
			diff(t, fmt.Sprintf("after %d", i+1), map[string]int64{
				"findings_opened blind": i + 1, "reverified blind": 2 * (i + 1), "reverified changed": 3 * (i + 1), "reverified confirmed": 4 * (i + 1),
			}, w.tallied(t.Context()))
			w.fold()
		}
	}
}

// openedSQL is the truth that the tally of openings is held against.
const openedSQL = `SELECT count(*) FROM reconciler.journal j WHERE j.tenant = 'default' AND j.kind = 'opened'`

const openedTally = "operations_opened stripe-main refund.create"

func TestAnEntryOfATransactionThatCommitsAfterLaterOnesIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	slow, err := w.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }()
	const open = `SELECT reconciler.open_operation('{"id": "slow", "action": "refund.create", "target": "t", "request": {}, "amount": 1, "currency": "EUR"}')`
	if _, err := slow.Exec(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	w.open("a", "b")
	w.fold()
	w.open("c")
	w.fold()
	if got := w.tallied(t.Context())[openedTally]; got != 3 {
		t.Errorf("%d opened while one is not committed, want 3", got)
	}
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := w.tallied(t.Context())[openedTally]; got != 4 {
			t.Errorf("%d opened, want 4", got)
		}
		w.fold()
	}
}

func TestTalliesNeverGoBackAndCountEachEntryOnceWhoeverWritesAndFolds(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	ctx, done := context.WithCancel(t.Context())
	var writers, others sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := range 25 {
				id := fmt.Sprintf("op-%d-%d", i, n)
				err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), `SELECT reconciler.open_operation(jsonb_build_object('id', $1::text, 'action', 'refund.create',
						'target', $1::text, 'request', '{}'::jsonb, 'amount', 1, 'currency', 'EUR'))`, id)
					time.Sleep(time.Duration(n%5) * time.Millisecond) // so that folds meet it open
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				if err := w.led.FoldTallies(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() {
		for last := int64(0); ctx.Err() == nil; {
			s, err := w.led.Snapshot(ctx, t0)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				continue
			}
			for _, c := range s.Tallies {
				if c.Name == "operations_opened" && c.N < last {
					t.Errorf("the counter went back from %d to %d", last, c.N)
				} else if c.Name == "operations_opened" {
					last = c.N
				}
			}
		}
	})
	writers.Wait()
	done()
	others.Wait()
	for range 2 {
		if got := w.tallied(t.Context())[openedTally]; got != 100 || one[int](w, openedSQL) != 100 {
			t.Errorf("%d counted, want the 100 of the journal", got)
		}
		w.fold()
	}
}

// TestTalliesInAnyOrder opens, commits, rolls back and folds in any order: after each
// step the counter is the number of committed entries.
func TestTalliesInAnyOrder(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	number := 0
	rapid.Check(t, func(r *rapid.T) {
		var open []pgx.Tx
		defer func() {
			for _, tx := range open {
				_ = tx.Rollback(context.WithoutCancel(t.Context()))
			}
		}()
		end := func(how func(pgx.Tx) error) {
			if len(open) == 0 {
				return
			}
			i := rapid.IntRange(0, len(open)-1).Draw(r, "which")
			if err := how(open[i]); err != nil {
				r.Fatal(err)
			}
			open = slices.Delete(open, i, i+1)
		}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"open", "commit", "roll back", "fold", "repeat"}).Draw(r, "step") {
			case "open":
				if len(open) == 2 {
					continue // the pool has few connections
				}
				tx, err := w.db.Begin(t.Context())
				if err != nil {
					r.Fatal(err)
				}
				open = append(open, tx)
				number++
				if _, err := tx.Exec(t.Context(), `SELECT reconciler.open_operation(jsonb_build_object('id', $1::text, 'key', $1::text,
					'action', 'refund.create', 'target', $1::text, 'request', '{}'::jsonb))`, fmt.Sprint("op-", number)); err != nil {
					r.Fatal(err)
				}
			case "commit":
				end(func(tx pgx.Tx) error { return tx.Commit(t.Context()) })
			case "roll back":
				end(func(tx pgx.Tx) error { return tx.Rollback(t.Context()) })
			case "fold":
				w.fold()
			case "repeat":
				w.open("again")
			}
			got, truth := w.tallied(t.Context())[openedTally], one[int64](w, openedSQL)
			if got != truth {
				r.Fatalf("%d counted of %d", got, truth)
			}
		}
	})
}

func TestTalliesGoOnWhereADumpWasRestoredIntoAnotherServer(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	w.open("before-1", "before-2")
	w.at(t0.Add(time.Minute))
	w.open("not-folded")
	// What a restored dump looks like: transactions far beyond this server's.
	for _, sql := range []string{
		`ALTER TABLE reconciler.journal DISABLE TRIGGER journal_append_only`,
		`UPDATE reconciler.journal SET tx = CASE operation_id WHEN 'not-folded' THEN '4000000001'::xid8 ELSE '900'::xid8 END`,
		`INSERT INTO reconciler.tally_marks VALUES ('default', '4000000000', '2026-11-02T10:00:00Z')`,
		`INSERT INTO reconciler.tallies VALUES ('default', 'operations_opened', '{stripe-main,refund.create}', 2)`,
		`ALTER TABLE reconciler.journal ENABLE TRIGGER journal_append_only`,
	} {
		w.exec(sql)
	}
	w.at(t0.Add(2 * time.Minute))
	w.open("after-1")
	w.fold()
	if got := w.tallied(t.Context())[openedTally]; got != 4 {
		t.Errorf("%d opened, want 4", got)
	}
	w.open("after-2")
	for range 2 {
		if got := w.tallied(t.Context())[openedTally]; got != 5 {
			t.Errorf("%d opened, want 5", got)
		}
		w.fold()
	}
}

func TestEffectsThatNoActionMakesWaitForNoOperation(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	paid := refund(recon.Operation{ID: "customer", SentAt: t0}, "ch_1")
	paid.Kind = "charge"
	stray := refund(recon.Operation{ID: "nobody", SentAt: t0}, "re_stray")
	w.record(ledger.Batch{Hold: w.hold(), Now: t0, Effects: []recon.Effect{paid, stray}})
	s, err := w.led.Snapshot(t.Context(), t0)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "unowned", map[recon.SourceName]int64{source: 1}, s.EffectsUnowned)
}

func TestTheNextEndOfAKeyIsOneStillToCome(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	w.open("early", "late", "over")
	for _, id := range []string{"early", "late", "over"} {
		w.attempted(id, recon.ClassIndeterminate, "", "")
	}
	for id, in := range map[string]time.Duration{"early": time.Hour, "late": 2 * time.Hour, "over": -time.Hour} {
		w.exec(`UPDATE reconciler.operations SET key_expires_at = $2 WHERE operation_id = $1`, id, t0.Add(in))
	}
	s, err := w.led.Snapshot(t.Context(), t0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Operations, func(g ledger.OperationGauge) bool { return g.State == recon.Unknown })
	if got := s.Operations[i].NextKeyExpiry; cmp.Compare(got.Unix(), t0.Add(time.Hour).Unix()) != 0 {
		t.Errorf("the next key expires at %s, want an hour from now", got)
	}
}

// What each kind of entry counts as, beside the opening that every operation has.
func TestWhatEntriesCountAs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const of = " stripe-main refund.create "
	tests := []struct {
		name, kind, body string
		want             []string
	}{
		{"an attempt in doubt", "attempt_finished", `{"from": "in_progress", "to": "unknown", "class": "indeterminate"}`, []string{"operations_became_unknown" + of + "indeterminate"}},
		{"a refusal that says nothing of an earlier attempt", "attempt_finished", `{"from": "in_progress", "to": "unknown", "class": "refused", "error_code": "500 miles"}`,
			[]string{"operations_became_unknown" + of + "refused"}},
		{"a late answer that changes nothing", "attempt_finished", `{"from": "unknown", "to": "unknown", "class": "succeeded", "applied": false}`, nil},
		{"a late answer after the close", "attempt_finished", `{"from": "succeeded", "to": "succeeded", "class": "succeeded", "applied": false}`, nil},
		{"an attempt that starts", "attempt_started", `{"from": "unknown", "to": "in_progress"}`, nil},
		{"found while in progress", "decision", `{"from": "in_progress", "to": "succeeded", "rule": "found"}`,
			[]string{"confirmed_after_timeout", "operations_closed" + of + "succeeded evidence"}},
		{"found that was never sent", "decision", `{"from": "pending", "to": "succeeded", "rule": "found"}`, []string{"operations_closed" + of + "succeeded evidence"}},
		{"given up before it was sent", "decision", `{"from": "pending", "to": "failed", "rule": "never_sent"}`, []string{"operations_closed" + of + "failed policy"}},
		{"a failed one that has an effect", "decision", `{"from": "failed", "to": "succeeded", "rule": "conflict"}`, nil},
		{"a failed one whose effect is in flight", "decision", `{"from": "failed", "to": "unknown", "rule": "conflict"}`, []string{"operations_became_unknown" + of + "conflict"}},
		{"a rule that is not known here", "decision", `{"from": "pending", "to": "unknown", "rule": "brand_new"}`, []string{"operations_became_unknown" + of + "other"}},
		{"nothing is left of it", "decision", `{"from": "succeeded", "to": "manual_review", "rule": "reversed"}`, []string{"reversed_effects"}},
		{"nothing is left of it, still", "decision", `{"from": "manual_review", "to": "manual_review", "rule": "reversed"}`, nil},
		{"a person closes it", "person", `{"from": "manual_review", "to": "failed", "by": "ana"}`, []string{"operations_closed" + of + "failed person"}},
		{"a person accepts what is closed", "person", `{"from": "succeeded", "to": "succeeded", "by": "ana"}`, nil},
		{"an adopted effect", "opened", `{"to": "succeeded", "by": "ana"}`, []string{"operations_closed" + of + "succeeded person", "operations_opened" + of[:len(of)-1]}},
		{"an imported one", "opened", `{"to": "failed", "by": "import"}`, []string{"operations_closed" + of + "failed import", "operations_opened" + of[:len(of)-1]}},
		{"what was seen", "seen", `{"from": "unknown", "to": "unknown"}`, nil},
	}
	for i, tt := range tests {
		id := fmt.Sprint("op-", i)
		w.seed(id)
		before := w.tallied(t.Context())
		w.exec(`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash) VALUES ('default', $1, 2, $2, $3, $4, sha256(''))`,
			id, tt.kind, t0, tt.body)
		var got []string
		for name, n := range w.tallied(t.Context()) {
			if n != before[name] {
				got = append(got, name)
			}
			if n > before[name]+1 {
				t.Errorf("%s: %s grew by %d", tt.name, name, n-before[name])
			}
		}
		slices.Sort(got)
		diff(t, tt.name, tt.want, got)
	}
}
