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
	}{
		"keys and complete lists": {
			func(*recon.Policy) {}, []recon.Ability{id, list, search},
			[3]string{"keys (24h)", "looked up by id, list, search", "not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}},
		"no repeats": {
			func(p *recon.Policy) { p.Repeat = recon.RepeatNever }, []recon.Ability{list},
			[3]string{"keys (24h), repeat never", "looked up by list", "not found by list (after 1m) counts, 3 looks over 10m make absent: missing"}},
		"neither keys nor proof": {
			func(p *recon.Policy) { p.KeyLifetime = 0 }, []recon.Ability{search},
			[3]string{"no keys, so it is never sent again after a lost answer", "looked up by search",
				"not found proves nothing, a person decides after 72h at the latest"}},
		"a key that is not sent": {
			func(p *recon.Policy) { p.Marks = []recon.Mark{recon.MarkReference} }, []recon.Ability{id, list},
			[3]string{"its key is not sent (marks), so it is never sent again after a lost answer", "looked up by id, list",
				"not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}},
		"lists look for what is not sent": {
			func(p *recon.Policy) { p.Marks = []recon.Mark{recon.MarkKey} }, []recon.Ability{list},
			[3]string{"keys (24h)", "cannot be looked up", "not found proves nothing, a person decides after 72h at the latest"}},
		"an id that nobody was told": {
			func(p *recon.Policy) { p.KeyLifetime = 0 }, []recon.Ability{id},
			[3]string{"no keys, so it is never sent again after a lost answer", "looked up by id alone, which a lost answer does not tell",
				"not found proves nothing, a person decides after 72h at the latest"}},
		"unverifiable": {
			func(p *recon.Policy) { p.KeyLifetime, p.Unverifiable = 0, "accepted" }, []recon.Ability{id},
			[3]string{"no keys, so it is never sent again after a lost answer", "looked up by id alone, which a lost answer does not tell",
				"unverifiable, which is accepted: a person decides at once"}},
		"a read": {
			func(p *recon.Policy) { p.Class, p.KeyLifetime = recon.Read, 0 }, []recon.Ability{id, list},
			[3]string{"needs no key", "looked up by id, list", "not found by id (after 1m), list (after 1m) counts, 3 looks over 10m make absent: missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := recon.DefaultPolicy()
			p.Class, p.Repeat, p.KeyLifetime = recon.Irreversible, recon.RepeatSameKey, recon.Duration(24*time.Hour)
			c.change(&p)
			f := footingOf(p, recon.Sheet{Abilities: c.abilities})
			if diff := cmp.Diff(c.want, [3]string{f.Keys, f.Lookup, f.NotFound}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
