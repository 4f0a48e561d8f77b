package migrations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What may be sent a second time after a lost answer, over everything that takes part in
// the decision: the class, the policy's word, the provider's keys and what it is given.
func TestWhatMayRepeatAfterALostAnswer(t *testing.T) {
	t.Parallel()
	const allowed = ""
	keys, noKeys := 24*time.Hour, time.Duration(0)
	key, reference := []recon.Mark{recon.MarkKey}, []recon.Mark{recon.MarkReference}
	for _, c := range []struct {
		class    recon.ActionClass
		repeat   recon.Repeat
		lifetime time.Duration
		marks    []recon.Mark
		after    time.Duration
		refusal  string // a part of the reason
	}{
		{recon.Irreversible, recon.RepeatSameKey, keys, key, time.Hour, allowed},
		{recon.Irreversible, recon.RepeatSameKey, keys, key, 25 * time.Hour, "key lifetime is over"},
		{recon.Irreversible, recon.RepeatSameKey, keys, reference, time.Hour, "key is not given to the provider"},
		{recon.Irreversible, recon.RepeatSameKey, noKeys, key, time.Hour, "keeps no keys and the action is irreversible"},
		{recon.Irreversible, recon.RepeatNever, keys, key, time.Hour, "allows no repeat"},
		{recon.Irreversible, recon.RepeatNever, noKeys, key, time.Hour, "allows no repeat"},

		{recon.Reversible, recon.RepeatSameKey, keys, key, time.Hour, allowed},
		{recon.Reversible, recon.RepeatSameKey, keys, key, 25 * time.Hour, "key lifetime is over"},
		{recon.Reversible, recon.RepeatSameKey, keys, reference, time.Hour, "key is not given to the provider"},
		{recon.Reversible, recon.RepeatSameKey, noKeys, key, time.Hour, "keeps no keys and the action is reversible"},
		{recon.Reversible, recon.RepeatNever, keys, key, time.Hour, "allows no repeat"},
		{recon.Reversible, recon.RepeatNever, noKeys, key, time.Hour, "allows no repeat"},

		{recon.Idempotent, recon.RepeatSameKey, keys, key, time.Hour, allowed},
		{recon.Idempotent, recon.RepeatSameKey, keys, key, 25 * time.Hour, "key lifetime is over"},
		{recon.Idempotent, recon.RepeatSameKey, keys, reference, time.Hour, "key is not given to the provider"},
		{recon.Idempotent, recon.RepeatSameKey, noKeys, reference, 25 * time.Hour, allowed},
		{recon.Idempotent, recon.RepeatNever, keys, key, time.Hour, "allows no repeat"},
		{recon.Idempotent, recon.RepeatNever, noKeys, key, time.Hour, "allows no repeat"},

		{recon.Read, recon.RepeatSameKey, keys, key, 25 * time.Hour, allowed},
		{recon.Read, recon.RepeatSameKey, keys, reference, 25 * time.Hour, allowed},
		{recon.Read, recon.RepeatSameKey, noKeys, reference, 25 * time.Hour, allowed},
		{recon.Read, recon.RepeatNever, keys, key, time.Hour, "allows no repeat"},
		{recon.Read, recon.RepeatNever, noKeys, key, time.Hour, "allows no repeat"},
	} {
		name := fmt.Sprintf("%s with repeat %s, keys kept for %s, given %s, after %s", c.class, c.repeat, c.lifetime, c.marks, c.after)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			p := policy()
			p.Class, p.Repeat, p.KeyLifetime, p.Marks = c.class, c.repeat, recon.Duration(c.lifetime), c.marks
			a.policy(p)
			id := a.open(nil).text("operation_id")
			a.attempt(id, "indeterminate", nil)
			a.advance(c.after)
			a.repeats(id, c.refusal)
		})
	}
}

// repeats demands of a claim by action, and of one by id where that got nothing, that
// the operation may be sent again and until its lease ends, or that it is refused for
// this reason.
func (a actor) repeats(id, refusal string) {
	a.t.Helper()
	got := a.call("claim_operation", object{"action": "refund.create", "holder": "w"})
	if refusal == "" {
		if got["claimed"] != true || got["operation_id"] != id || got["send_within_seconds"] != 60.0 {
			a.t.Errorf("a repeat: %v, want a claim to send within the lease", got)
		}
		return
	}
	if got["claimed"] != false {
		a.t.Errorf("a repeat by action: %v, want none", got)
	}
	got = a.claim(id, nil)
	if got["claimed"] != false || !strings.Contains(got.text("reason"), refusal) || got["verdict"] != "unknown_reconciliation_required" {
		a.t.Errorf("a repeat: %v, want a refusal that says %q", got, refusal)
	}
}

// What stood at the first attempt is not what stands now.
func TestAChangedPolicyDoesNotMakeARepeatSafe(t *testing.T) {
	t.Parallel()
	type change func(*recon.Policy)
	keeps := func(d time.Duration) change { return func(p *recon.Policy) { p.KeyLifetime = recon.Duration(d) } }
	gives := func(m ...recon.Mark) change { return func(p *recon.Policy) { p.Marks = m } }
	for name, c := range map[string]struct {
		first, then change
		refusal     string
	}{
		"the provider no longer keeps keys":              {keeps(24 * time.Hour), keeps(0), "keeps no keys"},
		"it kept none when the first attempt was made":   {keeps(0), keeps(24 * time.Hour), "key lifetime"},
		"the key is no longer sent":                      {gives(recon.MarkKey), gives(recon.MarkReference), "not given"},
		"the key was not sent with the first attempt":    {gives(recon.MarkReference), gives(recon.MarkKey), "not given"},
		"the same policy again changes nothing":          {keeps(24 * time.Hour), keeps(24 * time.Hour), ""},
		"it was a read, and is taken for more than that": {func(p *recon.Policy) { p.Class = recon.Read }, gives(recon.MarkKey), "key lifetime"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			p := policy()
			c.first(&p)
			a.policy(p)
			id := a.open(nil).text("operation_id")
			a.attempt(id, "indeterminate", nil)
			p = policy()
			c.then(&p)
			a.policy(p)
			a.advance(time.Hour)
			a.repeats(id, c.refusal)
		})
	}
}

func TestAReleaseObeysTheSameRuleAsARepeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class   recon.ActionClass
		refusal string
	}{
		"irreversible at a provider without keys": {recon.Irreversible, "it was released, but the provider keeps no keys"},
		"reversible at a provider without keys":   {recon.Reversible, "it was released, but the provider keeps no keys"},
		"idempotent at a provider without keys":   {recon.Idempotent, ""},
		"a read at a provider without keys":       {recon.Read, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			p := policy()
			p.Class, p.Repeat, p.KeyLifetime = c.class, recon.RepeatNever, 0
			a.policy(p)
			id := a.open(nil).text("operation_id")
			a.attempt(id, "indeterminate", nil)
			exec(t, a.pool, `UPDATE reconciler.operations SET state = 'pending', released = true, unknown_since = NULL
				WHERE tenant = 'default' AND operation_id = $1`, id)
			if got := a.call("claim_operation", object{"action": "refund.create", "holder": "w"}); (got["claimed"] == true) != (c.refusal == "") {
				t.Errorf("by action: %v", got)
			}
			if c.refusal == "" {
				return
			}
			if got := a.claim(id, nil); got["claimed"] != false || !strings.Contains(got.text("reason"), c.refusal) {
				t.Errorf("by id: %v, want a refusal that says %q", got, c.refusal)
			}
		})
	}
}

func TestGoAndSQLAgreeOnWhatNeedsNoKey(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	for _, class := range []recon.ActionClass{recon.Irreversible, recon.Reversible, recon.Idempotent, recon.Read, ""} {
		for _, lifetime := range []time.Duration{0, 24 * time.Hour} {
			p := policy()
			p.Class, p.KeyLifetime = class, recon.Duration(lifetime)
			body, err := json.Marshal(p)
			must(t, err)
			var got bool
			must(t, a.pool.QueryRow(t.Context(), `SELECT reconciler.needs_no_key($1::jsonb)`, string(body)).Scan(&got))
			if got != p.NeedsNoKey() {
				t.Errorf("class %q, keys kept for %s: SQL says %v, Go %v", class, lifetime, got, p.NeedsNoKey())
			}
		}
	}
}
