package escalation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// many records n unknown operations with an unresolved finding each, in one statement.
// Their ages go up to so much.
func (s *stand) many(n int, prefix string, oldest time.Duration) {
	s.Helper()
	now := s.clock.now()
	s.exec(`INSERT INTO reconciler.operations (tenant, operation_id, source, action, policy_version, target, key, amount, currency, state,
			created_at, sent_at, unknown_since, key_expires_at, account, mode, request_hash, attempts, last_class, in_doubt)
		SELECT 'default', $2 || lpad(i::text, 6, '0'), 'stripe-main', 'refund.create', 1, 'order:' || i, 'key-' || $2 || i, 1000, CASE i % 3 WHEN 0 THEN 'USD' ELSE 'EUR' END, 'unknown',
			$3, $3, $3::timestamptz - $4::interval * i / $1, $3::timestamptz + interval '20 hours', 'acct_1', 'live', '\x00', 1, 'indeterminate', true
		FROM generate_series(1, $1) i`, n, prefix, now, oldest.String())
	b := ledger.Batch{Hold: s.hold, Now: now}
	for i := range n {
		b.Findings = append(b.Findings, recon.Finding{Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: source,
			Operations: []recon.OperationID{recon.OperationID(fmt.Sprintf("%s%06d", prefix, i+1))}, Reason: "its answer was lost",
			Money: recon.Money{Minor: 1000, Currency: map[bool]string{true: "USD", false: "EUR"}[(i+1)%3 == 0]}})
	}
	if _, err := s.led.Record(s.Context(), b); err != nil {
		s.Fatal(err)
	}
}

// endAll ends the findings of operations whose id begins so.
func (s *stand) endAll(prefix string) {
	s.Helper()
	s.exec(`UPDATE reconciler.operations SET state = 'succeeded', effect_id = 're_' || operation_id, closed_at = $2 WHERE operation_id LIKE $1 || '%'`, prefix, s.clock.now())
	s.exec(`UPDATE reconciler.findings SET state = 'ended', ended_at = $2, ending = 'it was found', version = version + 1
		WHERE operation_ids[1] LIKE $1 || '%' AND state <> 'ended'`, prefix, s.clock.now())
}

func (s *stand) count(sql string) int {
	s.Helper()
	var n int
	if err := s.db.QueryRow(s.Context(), sql).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// down says that the source does not answer since a time; zero: it answers.
func (s *stand) down(since time.Time) {
	s.Helper()
	state := ledger.SourceState{}
	b := ledger.Batch{Hold: s.hold, Now: s.clock.now(), SourceState: &state}
	blind := recon.Finding{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "stripe-main could not be asked: it did not answer"}
	if since.IsZero() {
		b.Ends = []string{blind.Fingerprint()}
	} else {
		state.BlindSince, state.Blinds, state.ProbeAt = since, 20, s.clock.now().Add(time.Minute)
		b.Findings = []recon.Finding{blind}
	}
	if _, err := s.led.Record(s.Context(), b); err != nil {
		s.Fatal(err)
	}
}

func TestB30_FiveHundredOldOnesAreOneMessageAndTodaysHaveTheirOwn(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.exec(`UPDATE reconciler.policies SET body = jsonb_set(body, '{exponents}', '{"USD": 0}')`) // a provider with decimals of its own
	s.many(501, "old-", 365*24*time.Hour)
	s.run()
	s.after(5 * time.Second)
	all := s.slack.Messages(channel)
	if len(all) != 1 {
		t.Fatalf("%d messages, want one about all 501", len(all))
	}
	text := all[0].Plain()
	for _, part := range []string{"🔴 501 × unresolved at stripe-main", "501 open of 501 told here", "3,340.00 EUR, 167,000 USD at risk", "and 491 more",
		"order:501", "reconciler findings list --source stripe-main --kind unresolved"} {
		if !strings.Contains(text, part) {
			t.Errorf("the message does not say %q:\n%s", part, text)
		}
	}
	// The old ones stay, and hide nothing: it takes in no more after a while.
	for range 5 {
		s.after(5 * time.Minute)
	}
	o, _ := s.unresolved("today")
	s.run()
	all = s.slack.Roots(channel)
	if len(all) != 2 || !strings.Contains(all[1].Plain(), string(o.ID)) {
		t.Fatalf("%d messages, want today's beside the old ones'", len(all))
	}
	// They end one by one: the message is changed in place, until the last ones are told by themselves.
	edits := all[0].Edits
	s.endAll("old-0001")
	s.after(time.Minute)
	s.after(5 * time.Minute)
	all = s.slack.Roots(channel)
	if text := all[0].Plain(); !strings.Contains(text, "401 × unresolved") || !strings.Contains(text, "100 turned out to have succeeded") || all[0].Edits <= edits {
		t.Errorf("after 100 ended:\n%s", text)
	}
	s.endAll("old-0002")
	s.endAll("old-0003")
	s.endAll("old-0004")
	s.endAll("old-00000")
	for i := 1; i < 10; i++ {
		s.endAll(fmt.Sprintf("old-0000%d", i))
	}
	s.endAll("old-000500")
	for range 3 {
		s.after(5 * time.Minute)
	}
	all = s.slack.Roots(channel)
	want(t, "messages, with one for the last", len(all), 3)
	if text := all[0].Plain(); !strings.Contains(text, "✅ Ended: 501 × unresolved") || !strings.Contains(text, "1 were still open") {
		t.Errorf("the incident must show its end:\n%s", text)
	}
	if len(all) == 3 && !strings.Contains(all[2].Plain(), "old-000501") {
		t.Errorf("the last one must be told by itself:\n%s", all[2].Plain())
	}
}

// An hour in which the provider is away, with ten thousand operations that wait for it.
func TestAnOutageOfAnHourIsOneMessage(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy = escalation.Policy{Ladders: map[string][]escalation.Step{"default": {
		{After: 15 * time.Minute, To: channel}, {After: 4 * time.Hour, To: channel, Mention: "oncall"}}}}
	began := s.clock.now()
	s.wait(14 * time.Minute)
	rows := s.count(`SELECT (SELECT count(*) FROM reconciler.notices) + (SELECT count(*) FROM reconciler.incidents)`)
	s.many(10_000, "op-", 14*time.Minute) // they come due before the source is told as blind
	s.down(began)
	s.exec(`UPDATE reconciler.findings SET state = 'ended', version = version + 1 WHERE kind = 'blind'`)
	s.run()
	s.wait(time.Minute)
	s.down(began)
	for range 60 {
		s.after(45 * time.Second)
	}
	all := s.slack.Messages(channel)
	if len(all) != 1 {
		t.Fatalf("%d messages, want 1", len(all))
	}
	text := all[0].Plain()
	for _, part := range []string{"🔴 stripe-main cannot be asked: 10,000 operations wait", "No answer for 15 min", "10,000 open of 10,000", "66,670.00 EUR, 33,330.00 USD at risk", "it did not answer", "The first safe retry ends in", "and 9,990 more"} {
		if !strings.Contains(text, part) {
			t.Errorf("the message does not say %q:\n%s", part, text)
		}
	}
	if n := s.count(`SELECT (SELECT count(*) FROM reconciler.notices) + (SELECT count(*) FROM reconciler.incidents)`) - rows; n > 10 {
		t.Errorf("%d rows for one message", n)
	}
	requests := len(s.slack.Calls())
	if requests > 10 {
		t.Errorf("%d requests while nothing changed", requests)
	}
	// It is back: nearly all are found, and the rest is told one by one.
	s.down(time.Time{})
	s.after(time.Minute)
	if text := s.slack.Messages(channel)[0].Plain(); !strings.Contains(text, "🟡 stripe-main answers again: 10,000 operations wait") {
		t.Errorf("when it is back:\n%s", text)
	}
	s.endAll("op-00")
	for range 24 {
		s.after(30 * time.Second)
	}
	all = s.slack.Messages(channel)
	if len(all) != 2 || !strings.Contains(all[0].Plain(), "✅ Ended: stripe-main answers again") || !strings.Contains(all[1].Plain(), "op-010000") {
		t.Fatalf("%d messages after the outage, want its end and the one that is left:\n%s", len(all), all[0].Plain())
	}
}

func TestOfAnOutageThatEndsBeforeAnybodyWasToldNobodyIs(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy = escalation.Policy{Ladders: map[string][]escalation.Step{"default": {{After: time.Hour, To: channel}}}}
	s.down(s.clock.now().Add(-15 * time.Minute))
	s.run()
	s.after(10 * time.Minute)
	s.down(time.Time{})
	for range 30 {
		s.after(5 * time.Minute)
	}
	want(t, "messages", len(s.slack.Messages(channel)), 0)
	want(t, "open incidents", s.count(`SELECT count(*) FROM reconciler.incidents WHERE ended_at IS NULL`), 0)
}

func TestAStepAnswersInTheThreadForTheChannelToSee(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy = escalation.Policy{Ladders: map[string][]escalation.Step{"default": {{To: channel}, {After: time.Hour, To: channel, Mention: "here"}}}}
	o, f := s.unresolved("1")
	s.run()
	root := s.slack.Messages(channel)[0]
	s.after(59 * time.Minute)
	want(t, "answers before the hour", len(s.slack.Replies(root.TS)), 0)
	s.slack.Spoil(lostAnswer())
	s.after(2 * time.Minute)
	s.after(time.Minute)
	replies := s.slack.Replies(root.TS)
	if len(replies) != 1 || !replies[0].Broadcast || !strings.Contains(replies[0].Plain(), "<!here> 🔴 Still open after 1 h") {
		t.Fatalf("%d answers, want one for all to see", len(replies))
	}
	want(t, "looked for in the thread, and found", s.calls("conversations.replies"), "ok")
	want(t, "changes of the message", s.slack.Roots(channel)[0].Edits, 1)
	s.pass(o.ID, nil, f)
	s.after(time.Minute)
	s.after(24 * time.Hour)
	want(t, "messages in all", len(s.slack.Messages(channel)), 2)
	if text := s.slack.Roots(channel)[0].Plain(); !strings.Contains(text, "Ended") {
		t.Errorf("the message must show the end:\n%s", text)
	}
}

func TestB117_TheTeamsDestinationThenTheFallbackThenTheLog(t *testing.T) {
	t.Parallel()
	s := newStand(t, "team-a", "leads")
	s.policy = escalation.Policy{Ladders: map[string][]escalation.Step{"refund.create": {{To: "team-a"}}, "default": {{To: "leads"}}}}
	s.deliver.Fallback = "leads"
	s.slack.Archive("team-a", true)
	o, f := s.unresolved("1")
	s.run()
	s.after(time.Second)
	all := s.slack.Messages("leads")
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "the destination team-a does not take it") {
		t.Fatalf("the fallback got %d messages, want one that says for whom it stands in:\n%s", len(all), all[0].Plain())
	}
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 1)
	want(t, "undelivered by metric", s.results["team-a"][escalation.Undelivered], 1)
	// The fallback fails as well: counted, logged, and told to nobody else.
	s.slack.Archive("leads", true)
	s.unresolved("2")
	s.run()
	s.after(time.Second)
	want(t, "undelivered, of both", s.snapshot().UndeliveredOpen, 3)
	if n := strings.Count(s.log.String(), "level=ERROR"); n < 2 {
		t.Errorf("%d errors are logged:\n%s", n, s.log)
	}
	// Mended: nothing is lost, and what changed is shown in both places.
	s.slack.Archive("team-a", false)
	s.slack.Archive("leads", false)
	s.after(10 * time.Minute)
	s.after(10 * time.Minute)
	want(t, "messages of the team", len(s.slack.Messages("team-a")), 2)
	want(t, "messages of the fallback", len(s.slack.Messages("leads")), 2)
	s.pass(o.ID, nil, f)
	s.after(time.Minute)
	s.after(time.Minute)
	for _, place := range []string{"team-a", "leads"} {
		if text := s.slack.Messages(place)[0].Plain(); !strings.Contains(text, "Ended") {
			t.Errorf("%s does not show the end:\n%s", place, text)
		}
	}
	want(t, "undelivered at the end", s.snapshot().UndeliveredOpen, 0)
}

func TestB97_ManyChangesOfOneMessageAreOneAndNewAlarmsGoFirst(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy.FoldAt = 1000
	const many = 120
	all := map[recon.OperationID]recon.Finding{}
	for i := range many {
		o := s.lost(fmt.Sprint(i))
		all[o.ID] = finding(o, recon.FindUnresolved)
		s.pass(o.ID, []recon.Finding{all[o.ID]})
	}
	s.plan()
	s.wait(5 * time.Second) // whether others open with them
	for range many/20 + 1 { // a pass delivers twenty
		s.run()
	}
	want(t, "messages", len(s.slack.Messages(channel)), many)
	before := len(s.slack.Calls())
	for _, theirs := range []string{"1", "2"} { // each changes twice and ends, before anything is sent
		for id, f := range all {
			f.Observed = []recon.Difference{{Field: "amount", Theirs: theirs}}
			s.pass(id, []recon.Finding{f})
		}
		s.plan()
	}
	for id, f := range all {
		s.pass(id, nil, f)
	}
	s.plan()
	s.unresolved("new")
	s.slack.Spoil(tooMany(10 * time.Second))
	began := s.clock.now()
	s.run()
	want(t, "posted while it says to wait", len(s.slack.Messages(channel)), many)
	for range 20 {
		s.after(10 * time.Second)
	}
	calls := s.slack.Calls()[before:]
	posts, edits := 0, 0
	for i, c := range calls {
		switch {
		case c.Method == "chat.postMessage" && c.Outcome == "ok":
			posts++
			if edits > 0 {
				t.Errorf("request %d: the new one comes after %d changes", i, edits)
			}
			if c.At.Sub(began) < 10*time.Second {
				t.Errorf("posted %s after it was told to wait 10 s", c.At.Sub(began))
			}
		case c.Method == "chat.update":
			edits++
		case c.Method != "chat.postMessage":
			t.Errorf("request %d: %s, which no change needs", i, c.Method)
		}
	}
	if posts != 1 || edits != many {
		t.Errorf("%d posts and %d changes, want 1 and %d", posts, edits, many)
	}
}

func TestTheDigestTellsTheDayOnceToThoseWhoWantIt(t *testing.T) {
	t.Parallel()
	s := newStand(t, channel, "leads")
	s.policy.Ladders = map[string][]escalation.Step{"default": {}} // all that is told here is the digest
	s.clock.at = s.clock.at.Truncate(24 * time.Hour).Add(32 * time.Hour)
	eight := s.clock.now()
	s.policy.Digest = escalation.Digest{To: []string{"leads"}, Last: func(now time.Time) time.Time {
		return eight.Add(now.Sub(eight).Truncate(24 * time.Hour)).Add(-24 * time.Hour * time.Duration(b2i(now.Before(eight))))
	}}
	s.wait(-time.Hour)
	s.many(12, "op-", 3*time.Hour)
	s.endAll("op-00001")
	s.down(s.clock.now().Add(-20 * time.Minute))
	s.wait(time.Hour)
	for range 4 {
		s.after(time.Hour)
	}
	want(t, "messages to others", len(s.slack.Messages(channel)), 0)
	all := s.slack.Messages("leads")
	if len(all) != 1 {
		t.Fatalf("%d digests, want one", len(all))
	}
	text := all[0].Plain()
	for _, part := range []string{eight.Format(time.DateOnly) + ": 10 findings wait for a person", "13 opened, 3 ended", "stripe-main cannot be asked",
		"9 unresolved – nobody knows yet whether it happened", "60.00 EUR, 30.00 USD (+12, −3)", "1 blind"} {
		if !strings.Contains(text, part) {
			t.Errorf("the digest does not say %q:\n%s", part, text)
		}
	}
	s.after(20 * time.Hour)
	want(t, "digests on the next day", len(s.slack.Messages("leads")), 2)
	// A process that was away for long does not tell a digest of yesterday.
	s.after(38 * time.Hour)
	want(t, "digests that came too late", len(s.slack.Messages("leads")), 2)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What is no longer seen has not ended: while a source is away, and while nobody looks,
// its messages say what they said.
func TestB95_NothingIsToldAsEndedBecauseNobodyLooks(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.run()
	before := s.slack.Messages(channel)[0].Plain()
	for range 20 { // passes in which nothing is written about it: no sweep runs
		s.after(time.Hour)
	}
	s.down(s.clock.now().Add(-15 * time.Minute))
	for range 20 {
		s.after(time.Hour)
	}
	all := s.slack.Messages(channel)
	want(t, "messages, with the one about the source", len(all), 2)
	if all[0].Plain() != before {
		t.Errorf("the message says something else:\n%s", all[0].Plain())
	}
	for _, m := range all {
		if strings.Contains(m.Plain(), "Ended") {
			t.Errorf("told as ended:\n%s", m.Plain())
		}
	}
}

// An effect that nobody asked for is told with all that a person needs to decide.
func TestB02_ARefundMadeByHandIsTold(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.exec(`UPDATE reconciler.policies SET body = jsonb_set(body, '{exponents}', '{"EUR": 3}')`) // a provider with decimals of its own
	e := recon.Effect{ID: "re_B1", Source: source, System: "stripe-main", Kind: "refund", Status: recon.Completed, Money: recon.Money{Minor: 1500, Currency: "EUR"},
		Parent: "ch_B", Account: "acct_1", Mode: "live", CreatedAt: s.clock.now().Add(-2 * time.Hour), CreatedBy: "support@dashboard"}
	f := recon.Finding{Kind: recon.FindOrphan, Certainty: recon.Proof, Source: source, Effects: []recon.EffectRef{e.Ref()}, Money: e.Money, Reason: "no operation explains it"}
	if _, err := s.led.Record(t.Context(), ledger.Batch{Hold: s.hold, Now: s.clock.now(), Effects: []recon.Effect{e}, Findings: []recon.Finding{f}}); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.after(5 * time.Second)
	all := s.slack.Messages(channel)
	if len(all) != 1 {
		t.Fatalf("%d messages, want one", len(all))
	}
	for _, part := range []string{"🔴 Refund of 1.500 EUR at stripe-main", "no operation explains it", "re_B1", "under ch_B", "by support@dashboard", "Adopt it or mark it as not ours", "reconciler findings show "} {
		if !strings.Contains(all[0].Plain(), part) {
			t.Errorf("the message does not say %q:\n%s", part, all[0].Plain())
		}
	}
	// Adopted: it is shown, and never told again.
	s.exec(`UPDATE reconciler.findings SET state = 'settled', settled_at = $1, settled_by = 'ana', settled_as = 'adopt', version = version + 1`, s.clock.now())
	s.after(time.Minute)
	s.after(48 * time.Hour)
	all = s.slack.Messages(channel)
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "✅ Ended") {
		t.Errorf("%d messages:\n%s", len(all), all[0].Plain())
	}
}
