package large

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// check is one invariant of the product, by its name. It says everything that breaks it.
type check struct {
	name string
	say  func(*World, books) []string
}

// checks are the invariants that hold over the whole ledger. Those of single operations
// stand in judgeOne, those of single moments where the world sees them.
var checks = []check{
	{oneKey, keysAreApart},
	{oneKey, keysAreKept},
	{"nothing closes without a look, a definite answer or a person", closingsRest},
	{"one effect belongs to one operation", ownersAreOne},
	{"what people adopt is theirs", adoptedIsThere},
	{"nothing open without a plan", openIsPlanned},
	{"nothing overdue", nothingOverdue},
	{"evidence is never changed", chainsHold},
	{"a notice is delivered or counted as undelivered", noticesWent},
	{"a notice is delivered or counted as undelivered", noticesStand},
	{"the product never calls a write endpoint", onlyAgentsWrote},
	{"every operation and effect is accounted for", allAccounted},
	{"the world's own book is right", bookIsRight},
}

func keysAreApart(_ *World, a books) (wrong []string) {
	seen := map[string]recon.OperationID{}
	for id, o := range a.ops {
		key := string(o.Source) + " " + o.Key
		if other, twice := seen[key]; twice && o.Key != "" {
			wrong = append(wrong, fmt.Sprintf("%s and %s have the key %s", id, other, o.Key))
		}
		seen[key] = id
	}
	return wrong
}

// keysAreKept holds that whatever was sent for an operation bore its one key, and that every
// such request was an agent's.
func keysAreKept(w *World, a books) (wrong []string) {
	sent := map[recon.OperationID]int{}
	for _, c := range a.calls {
		id := recon.OperationID(strings.TrimSpace(c.Form.Get("metadata[" + marker + "]")))
		if !c.Write() || id == "" {
			continue
		}
		sent[id]++
		if o := a.ops[id]; c.Key == "" || c.Key != o.Key {
			wrong = append(wrong, fmt.Sprintf("%s was sent at %s under the key %q, and has %q", id, c.At.Format(time.RFC3339), c.Key, o.Key))
		}
	}
	for id, n := range sent {
		if n > w.sent[id] {
			wrong = append(wrong, fmt.Sprintf("%s was sent %d times, %d of them by agents", id, n, w.sent[id]))
		}
	}
	return wrong
}

// ownersAreOne holds that what the ledger stores as an operation's effect is no other one's,
// and is there at the provider.
func ownersAreOne(w *World, a books) (wrong []string) {
	deeds := map[string]*deed{}
	for _, d := range w.book.all() {
		deeds[string(d.source)+"/"+d.id] = d
	}
	owner := map[string]recon.OperationID{}
	for id, o := range a.ops {
		if o.EffectID == "" {
			continue
		}
		key := string(o.Source) + "/" + o.EffectID
		if other, taken := owner[key]; taken {
			wrong = append(wrong, fmt.Sprintf("%s is that of %s and of %s", key, id, other))
		}
		owner[key] = id
		if d := deeds[key]; d == nil || d.op != "" && d.op != id {
			wrong = append(wrong, fmt.Sprintf("%s has %s, which in truth is %+v", id, key, d))
		}
	}
	return wrong
}

func adoptedIsThere(w *World, a books) (wrong []string) {
	for id, effect := range w.adopted {
		if o := a.ops[id]; o.State != recon.Succeeded || o.EffectID != effect {
			wrong = append(wrong, fmt.Sprintf("%s was made for %s, and is %s with %q", id, effect, o.State, o.EffectID))
		}
	}
	return wrong
}

func openIsPlanned(_ *World, a books) (wrong []string) {
	for id, s := range a.stories {
		if s.Operation.State.Open() && s.Check.Next.IsZero() && !slices.ContainsFunc(s.Findings, recon.Finding.Open) {
			wrong = append(wrong, fmt.Sprintf("%s is %s, with neither a next check nor a finding", id, s.Operation.State))
		}
	}
	return wrong
}

func nothingOverdue(w *World, a books) (wrong []string) {
	for id, s := range a.stories {
		if next := s.Check.Next; s.Operation.State.Open() && !next.IsZero() && w.clock.Now().Sub(next) > time.Hour {
			wrong = append(wrong, fmt.Sprintf("%s is %s and was due at %s", id, s.Operation.State, next.Format(time.RFC3339)))
		}
	}
	return wrong
}

func chainsHold(_ *World, a books) (wrong []string) {
	for _, b := range a.chains.Broken {
		wrong = append(wrong, fmt.Sprintf("%s, entry %d: %s", b.Operation, b.Seq, b.Reason))
	}
	return wrong
}

func noticesWent(_ *World, a books) (wrong []string) {
	if !a.snapshot.OldestNotice.IsZero() {
		wrong = append(wrong, "one is due since "+a.snapshot.OldestNotice.Format(time.RFC3339))
	}
	return wrong
}

// noticesStand holds what the product says it delivered against what stands in the channels or
// was deleted there, and what it could not against what it counts.
func noticesStand(w *World, a books) (wrong []string) {
	type place struct{ channel, ts string }
	stand := map[place]bool{}
	for _, m := range w.slack.Messages("") {
		stand[place{m.ID, m.TS}] = true
	}
	undelivered := int64(0)
	for id, d := range w.notices.last {
		switch {
		case !d.Receipt.IsZero() && !stand[place{d.Receipt.Channel, d.Receipt.TS}] && !w.deleted[d.Receipt.TS]:
			wrong = append(wrong, fmt.Sprintf("%s was delivered as %+v, where no message stands", id, d.Receipt))
		case d.Undelivered:
			undelivered++
		}
	}
	if undelivered != a.snapshot.UndeliveredOpen {
		wrong = append(wrong, fmt.Sprintf("%d could not be delivered, and %d are counted", undelivered, a.snapshot.UndeliveredOpen))
	}
	return wrong
}

func onlyAgentsWrote(w *World, a books) (wrong []string) {
	writes, sent := 0, 0
	for _, c := range a.calls {
		if c.Method != http.MethodGet {
			writes++
		}
	}
	for id, n := range w.sent {
		if w.intents[id].onCards() {
			sent += n
		}
	}
	if writes > sent {
		wrong = append(wrong, fmt.Sprintf("%d writes at the card provider, and agents made %d", writes, sent))
	}
	if _, others := w.at.bank.Requests(); others > 0 {
		wrong = append(wrong, fmt.Sprintf("%d writes at the bank", others))
	}
	if _, others := w.at.post.Requests(); others > 0 {
		wrong = append(wrong, fmt.Sprintf("%d writes at the letter service", others))
	}
	return wrong
}

// allAccounted holds the last audit, of everything, against the book.
func allAccounted(w *World, a books) (wrong []string) {
	for _, name := range sourceNames {
		ops, effects := 0, 0
		for _, o := range a.ops {
			if o.Source == name {
				ops++
			}
		}
		for _, d := range w.book.all() {
			if d.source == name {
				effects++
			}
		}
		out := w.audit[name]
		if out.Operations != ops {
			wrong = append(wrong, fmt.Sprintf("the last audit of %s counts %d operations of %d", name, out.Operations, ops))
		}
		if name == told && out.Effects <= effects {
			continue // it counts those of which events told
		}
		if out.Effects != effects {
			wrong = append(wrong, fmt.Sprintf("the last audit of %s counts %d effects of %d", name, out.Effects, effects))
		}
	}
	return wrong
}

// bookIsRight holds the book against the card provider's own.
func bookIsRight(w *World, _ books) (wrong []string) {
	now := w.clock.Now()
	deeds := map[string]*deed{}
	for _, d := range w.book.all() {
		deeds[d.id] = d
	}
	for _, r := range w.at.cards.Refunds() {
		if r.Mode != mode {
			continue
		}
		d := deeds[r.ID]
		if d == nil || d.minor != r.Amount || wordOf(d.now(now)) != r.Status {
			wrong = append(wrong, fmt.Sprintf("%s is %s at the card provider, and %+v in the book", r.ID, r.Status, d))
		}
	}
	return wrong
}
