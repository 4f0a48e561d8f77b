//go:build e2e

package restore_test

import (
	"slices"
	"testing"
	"time"
)

// What a sweep concludes of a restored ledger is what it concludes of the one that was lost.
func TestASweepOfTheRestoredLedgerClosesTheSame(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.send(s.old, "lost", true, false)
	s.send(s.old, "never", false, false)
	s.open(s.old, "waiting")
	s.follow(stepBackup)
	s.follow(stepRestore)

	type outcome struct{ Source, Claimed, Succeeded, Failed, Kept, Blind any }
	var results [2][]outcome
	for n, url := range []string{s.old, s.new} {
		s.use(url)
		s.until(url, later(time.Hour))
		s.verb("sweep "+rfc(later(time.Hour)), &results[n])
	}
	differ(t, "outcomes of the sweep", results[0], results[1])
	differ(t, "states", s.states(s.old), s.states(s.new))
	differ(t, "findings", stories(t, s.old), stories(t, s.new))
	if got := s.states(s.new)["lost"]; got == "unknown" || s.stripe.Writes() != 0 {
		t.Errorf("the lost one is %s, %d writes at the provider", got, s.stripe.Writes())
	}
}

// stories are the findings and what the journals say, less what every ledger draws anew.
func stories(t *testing.T, url string) []string {
	t.Helper()
	return ask(t, url, `
		SELECT concat_ws(' ', 'finding', kind, state, reason) FROM reconciler.findings
		UNION ALL
		SELECT concat_ws(' ', 'journal', operation_id, seq, kind, at, body::jsonb ->> 'rule', body::jsonb ->> 'reason') FROM reconciler.journal
		ORDER BY 1`)
}

// The backup is older than what was sent: what the ledger lost is found as orphans, what
// it has is closed by its effect, nothing closes wrongly, and nobody can send anything
// again, though the provider has long forgotten the keys.
func TestWhatAnOlderBackupLacksIsFoundAndNotSentAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	closed := s.send(s.old, "closed", true, true)
	lost := s.send(s.old, "lost", true, false)
	s.send(s.old, "never", false, false)
	s.open(s.old, "waiting")
	s.open(s.old, "unsent")
	s.verb("audit "+rfc(monday.Add(time.Minute)), &struct{}{})
	s.follow(stepBackup)

	s.until(s.old, later(time.Hour))
	waiting := s.send(s.old, "waiting", true, true)
	newer := s.send(s.old, "newer", true, true)
	newerLost := s.send(s.old, "newer-lost", true, false)
	s.open(s.old, "newer-unsent")
	s.verb("sweep "+rfc(later(time.Hour)), &[]struct{}{})

	// Three days later the old server is gone.
	s.follow(stepRestore)
	s.use(s.new)
	s.until(s.new, later(72*time.Hour))
	s.follow(stepCheck)
	s.follow(stepHold)
	if err := do(t, as("shop", s.new), `SELECT reconciler.claim_operation('{"action": "refund.create", "holder": "worker"}')`); !denied(err) {
		t.Errorf("a program may send while the ledger does not know what was sent: %v", err)
	}
	s.page[stepAudit] += " " + rfc(s.now())
	s.follow(stepAudit)
	want := map[string]string{
		"closed": "succeeded " + closed, "lost": "succeeded " + lost, "waiting": "succeeded " + waiting,
		// Nothing of these is there: that one was sent is asked for again, that one was not is certain.
		"never": "unknown", "unsent": "failed",
	}
	differ(t, "states after the audit", want, s.states(s.new))

	s.page[stepOrphans] += " --format json"
	orphans := s.orphans()
	differ(t, "orphans", sorted(newer, newerLost), effects(orphans))
	for _, o := range orphans {
		s.reconciler("findings resolve " + o.ID + " --as adopt --reason 'made after the backup'")
	}
	if left := s.orphans(); len(left) != 0 {
		t.Errorf("after they were adopted these are left: %v", left)
	}

	s.follow(stepLetGo)
	for _, name := range []string{"closed", "lost", "waiting", "newer", "newer-lost"} {
		id, verdict := s.open(s.new, name)
		if verdict == "new" || verdict == "open_elsewhere" {
			t.Errorf("%s may be done again: opening it answers %s", name, verdict)
		}
		if id == "" {
			continue
		}
		if claim := s.call(s.new, "claim_operation", map[string]any{"operation_id": id, "holder": "worker"}); claim["claimed"] == true {
			t.Errorf("%s may be sent again: %v", name, claim)
		}
	}
	// What never happened is done as if nothing had been.
	if _, verdict := s.open(s.new, "newer-unsent"); verdict != "new" {
		t.Errorf("what nobody sent cannot be opened: %s", verdict)
	}
	if n := s.stripe.Writes(); n != 0 {
		t.Errorf("%d writes at the provider", n)
	}
}

type orphan struct {
	ID      string   `json:"id"`
	Effects []string `json:"effect_ids"`
}

func (s *shop) orphans() []orphan {
	s.Helper()
	var all []orphan
	s.decode(s.follow(stepOrphans), &all)
	return all
}

func effects(all []orphan) []string {
	var ids []string
	for _, o := range all {
		ids = append(ids, o.Effects...)
	}
	return sorted(ids...)
}

func sorted(ids ...string) []string {
	slices.Sort(ids)
	return ids
}
