package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// bustle is a world in which agents, sweeps and people act on the same operations in any
// order.
type bustle struct {
	*stand
	ops     []intent
	keys    map[string]string
	effects map[string][]string // made by hand, by the operation whose charge they hang under
	begun   time.Time
}

// Whatever people and sweeps do in whatever order: every change of state is a legal one
// that follows from the one before, every chain verifies, whatever needs two people had
// two, nothing is released too near the end of its key, and nothing open is forgotten.
func TestPeopleAndSweepsInAnyOrderKeepTheLaws(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Repeat, p.OneOpen = recon.RepeatSameKey, false })
	s.people(map[string]int64{"EUR": 100_500})
	worlds := 0
	rapid.Check(t, func(rt *rapid.T) {
		worlds++
		b := &bustle{stand: s, keys: map[string]string{}, effects: map[string][]string{}, begun: s.now()}
		for n := range 2 {
			// One of them above the limit.
			i := refund(10*worlds + n)
			i.id, i.amount = fmt.Sprintf("op_%d_%d", worlds, n), int64(1000+worlds+n*100_000)
			b.ops, b.keys[i.id] = append(b.ops, i), s.lose(i)
		}
		b.pass(16 * time.Minute)
		b.run() // people are told
		for range rapid.IntRange(5, 12).Draw(rt, "steps") {
			b.step(rt)
		}
		b.laws(rt)
		// The next world's sweeps leave this one alone.
		b.exec(`UPDATE reconciler.checks SET next_check = next_check + interval '10 years'`)
	})
	// A law that nothing ever came near holds nothing.
	for _, verb := range []recon.Verb{recon.Happened, recon.DidNotHappen, recon.Release, recon.Accept} {
		if n := len(s.rows(`SELECT action_key FROM reconciler.person_actions WHERE verb = '` + string(verb) + `' AND answer ->> 'outcome' = 'done'`)); n == 0 {
			t.Errorf("nobody was ever let %s", verb)
		}
	}
	if n := len(s.rows(`SELECT action_key FROM reconciler.person_actions WHERE details ? 'proposed_by'`)); n == 0 {
		t.Error("no two people ever agreed")
	}
}

func (b *bustle) step(rt *rapid.T) {
	i := rapid.SampledFrom(b.ops).Draw(rt, "operation")
	switch rapid.IntRange(0, 12).Draw(rt, "what") {
	case 0:
		b.pass(time.Duration(rapid.IntRange(1, 10*60).Draw(rt, "minutes")) * time.Minute)
	case 1, 2:
		b.pass(16 * time.Minute)
		b.run()
	case 3, 4:
		off := rapid.Int64Range(0, 1).Draw(rt, "off")
		b.effects[i.id] = append(b.effects[i.id], b.unmarked(i.charge, i.amount-off).ID)
	case 5:
		if b.keys[i.id] != "" && rapid.Bool().Draw(rt, "it happens") {
			b.happen(i, b.keys[i.id])
			b.keys[i.id] = ""
		}
	case 6:
		b.again(i)
	default:
		b.person(rt)
		b.person(rt)
	}
}

// again sends once more what may be sent once more, and loses the answer again.
func (b *bustle) again(i intent) {
	out := b.call("claim_operation", map[string]any{"operation_id": i.id, "holder": "agent"})
	if out["claimed"] == true {
		b.call("finish_attempt", map[string]any{"operation_id": i.id, "token": out["token"], "class": "indeterminate"})
	}
}

func (b *bustle) person(rt *rapid.T) {
	var mine []ledger.FindingRow
	for _, f := range b.findings() {
		if !f.OpenedAt.Before(b.begun) && len(f.Operations) > 0 {
			mine = append(mine, f)
		}
	}
	if len(mine) == 0 {
		return
	}
	f := rapid.SampledFrom(mine).Draw(rt, "finding")
	a := ledger.PersonAction{
		Finding: f.ID, Reason: "r", Via: "slack", Person: rapid.SampledFrom([]string{"ana", "bob"}).Draw(rt, "person"),
		Verb: rapid.SampledFrom(append([]recon.Verb{recon.Acknowledge, recon.CheckNow, recon.Adopt, recon.Happened}, recon.Answers...)).Draw(rt, "verb"),
	}
	if rapid.Bool().Draw(rt, "versioned") {
		a.Version = f.Version - int64(rapid.IntRange(0, 1).Draw(rt, "old"))
	}
	if p := f.Proposal; p != nil && rapid.Bool().Draw(rt, "seconds it") {
		a.Verb, a.Effect, a.Operation, a.Person = p.Verb, p.Effect, p.Operation, "ana"
		if p.Person == "ana" {
			a.Person = "bob"
		}
	} else if a.Verb.Settles() && rapid.Bool().Draw(rt, "names an effect") {
		a.Effect = rapid.SampledFrom(append(slices.Clone(b.effects[string(f.Operations[0])]), "re_nowhere")).Draw(rt, "effect")
	}
	if a.Verb == recon.Adopt && a.Operation == "" && rapid.Bool().Draw(rt, "names an operation") {
		a.Operation = recon.OperationID(rapid.SampledFrom(b.ops).Draw(rt, "adopter").id)
	}
	before := b.released()
	got, err := b.desk().Do(b.Context(), a)
	if err != nil {
		rt.Fatalf("%+v: %v", a, err)
	}
	if (got.Outcome == ledger.PersonRefused || got.Outcome == ledger.ChangedMeanwhile) && got.Reason == "" {
		rt.Errorf("%s without a reason: %+v", got.Outcome, got)
	}
	if a.Verb == recon.Release && got.Outcome == ledger.PersonDone && before == b.released() {
		rt.Errorf("released and nothing is: %+v", got)
	}
}

func (b *bustle) released() int {
	return len(b.rows(`SELECT operation_id FROM reconciler.operations WHERE state = 'pending' AND released`))
}

func (b *bustle) laws(rt *rapid.T) {
	for _, i := range b.ops {
		story := b.story(i)
		b.chain(rt, story)
		if story.Operation.State.Open() && story.Check.Next.IsZero() {
			rt.Errorf("%s is %s and nobody looks again", i.id, story.Operation.State)
		}
	}
	r, err := b.ledger.Verify(b.Context())
	if err != nil || len(r.Broken) > 0 {
		rt.Fatalf("chains: %+v, %v", r, err)
	}
	for law, sql := range map[string]string{
		"somebody approved their own proposal": `SELECT action_key FROM reconciler.person_actions WHERE person = details ->> 'proposed_by'`,
		"an amount above the limit was settled by one": `SELECT a.action_key FROM reconciler.person_actions a
			JOIN reconciler.findings f USING (tenant, finding_id)
			WHERE f.amount > 100500 AND a.answer ->> 'outcome' = 'done' AND a.answer ->> 'state' = 'settled' AND NOT a.details ? 'proposed_by'`,
		"an effect that the provider does not know counts by one word": `SELECT a.action_key FROM reconciler.person_actions a
			WHERE a.verb = 'happened' AND a.details ->> 'effect_id' = 're_nowhere' AND a.answer ->> 'outcome' = 'done' AND NOT a.details ? 'proposed_by'`,
		"a finding is settled and still has a proposal": `SELECT finding_id FROM reconciler.findings WHERE state IN ('settled', 'ended') AND proposal IS NOT NULL`,
	} {
		if rows := b.rows(sql); len(rows) > 0 {
			rt.Errorf("%s: %v", law, rows)
		}
	}
}

// chain follows one journal from state to state.
func (b *bustle) chain(rt *rapid.T, story recon.Story) {
	var last recon.State
	for _, e := range story.Journal {
		var body struct {
			From, To recon.State
			Release  bool
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			rt.Fatal(err)
		}
		if last != "" && (body.From != last || !recon.Legal(body.From, body.To)) {
			rt.Errorf("%s: from %s to %s after %s: %s", story.Operation.ID, body.From, body.To, last, e.Body)
		}
		last = body.To
		safe := story.Operation.KeyExpiresAt.Add(-story.Policy.KeyMargin.Std() - story.Policy.LeaseMax.Std())
		if body.Release && !e.At.Before(safe) {
			rt.Errorf("%s was released at %s, and its key is safe until %s", story.Operation.ID, e.At, safe)
		}
	}
	if last != story.Operation.State {
		rt.Errorf("%s is %s and its journal ends in %s", story.Operation.ID, story.Operation.State, last)
	}
}
