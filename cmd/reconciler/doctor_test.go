package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestWhatAnActionRestsOn(t *testing.T) {
	t.Parallel()
	minute := recon.Duration(time.Minute)
	id := recon.Ability{Method: recon.ByID, Consistency: recon.Strong, Lag: minute}
	list := recon.Ability{Method: recon.ByList, Consistency: recon.Strong, Lag: minute, NeedsMark: []recon.Mark{recon.MarkReference}}
	search := recon.Ability{Method: recon.BySearch, Consistency: recon.Eventual, Lag: minute, NeedsMark: []recon.Mark{recon.MarkReference}}
	for name, c := range map[string]struct {
		change    func(*recon.Policy)
		abilities []recon.Ability
		want      [3]string // keys, lookup, not found
		situation situation
	}{
		"keys and complete lists": {
			func(*recon.Policy) {}, []recon.Ability{id, list, search},
			[3]string{"keys (24h)", "looked up by id, list, search", "not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}, withKeys},
		"no repeats": {
			func(p *recon.Policy) { p.Repeat = recon.RepeatNever }, []recon.Ability{list},
			[3]string{"keys (24h), repeat never", "looked up by list", "not found by list (after 1m) counts, 3 looks over 10m make absent: missing"}, withKeys},
		"neither keys nor proof": {
			func(p *recon.Policy) { p.KeyLifetime = 0 }, []recon.Ability{search},
			[3]string{"neither keys nor own write path, so it is never sent again after a lost answer", "looked up by search",
				"not found proves nothing, a person decides after 72h at the latest"}, withNeither},
		"a key that is not sent": {
			func(p *recon.Policy) { p.Marks = []recon.Mark{recon.MarkReference} }, []recon.Ability{id, list},
			[3]string{"neither own write path nor keys, for none is sent (marks), so it is never sent again after a lost answer", "looked up by id, list",
				"not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}, withNeither},
		"lists look for what is not sent": {
			func(p *recon.Policy) { p.Marks = []recon.Mark{recon.MarkKey} }, []recon.Ability{list},
			[3]string{"keys (24h)", "cannot be looked up", "not found proves nothing, a person decides after 72h at the latest"}, withKeys},
		"an id that nobody was told": {
			func(p *recon.Policy) { p.KeyLifetime = 0 }, []recon.Ability{id},
			[3]string{"neither keys nor own write path, so it is never sent again after a lost answer", "looked up by id alone, which a lost answer does not tell",
				"not found proves nothing, a person decides after 72h at the latest"}, withNeither},
		"unverifiable": {
			func(p *recon.Policy) { p.KeyLifetime, p.Unverifiable = 0, "accepted" }, []recon.Ability{id},
			[3]string{"neither keys nor own write path, so it is never sent again after a lost answer", "looked up by id alone, which a lost answer does not tell",
				"unverifiable, which is accepted: a person decides at once"}, withNeither},
		"a read": {
			func(p *recon.Policy) { p.Class, p.KeyLifetime = recon.Read, 0 }, []recon.Ability{id, list},
			[3]string{"needs no key", "looked up by id, list", "not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}, withNoNeed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := recon.DefaultPolicy()
			p.Class, p.Repeat, p.KeyLifetime = recon.Irreversible, recon.RepeatSameKey, recon.Duration(24*time.Hour)
			c.change(&p)
			f := footingOf(p, recon.Sheet{Abilities: c.abilities})
			if f.Situation != c.situation {
				t.Errorf("the situation is %s, want %s", f.Situation, c.situation)
			}
			if diff := cmp.Diff(c.want, [3]string{f.Keys, f.Lookup, f.NotFound}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnActionOfOurOwnTablesLosesNoAnswer(t *testing.T) {
	t.Parallel()
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Class, p.Effect, p.Witness = "credit.grant", "own", recon.Irreversible, "credit", "orders"
	minute := recon.Duration(time.Minute)
	f := footingOf(p, recon.Sheet{OwnWrite: true, Abilities: []recon.Ability{{Method: recon.ByReference, Consistency: recon.Strong, Lag: minute, NeedsMark: []recon.Mark{recon.MarkReference}}}})
	want := "credit.grant at own, irreversible: own write path, so no answer can be lost; looked up by reference; " +
		"not found by reference (after 1m) counts, 3 looks over 10m make absent: missing; held against the witness orders"
	if f.Situation != withOwnWrite || f.String() != want {
		t.Errorf("situation %s: %s\nwant %s", f.Situation, f, want)
	}
}
