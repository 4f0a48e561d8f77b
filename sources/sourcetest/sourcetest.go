// Package sourcetest is the suite that every source must pass: what a source finds,
// when its silence counts, and how it says that it could not look. It is run on the
// real source against a fake of its provider that holds effects and can be told to
// fail; no part of the source is replaced.
//
//	func TestConformance(t *testing.T) {
//		sourcetest.Exercise(t, sourcetest.Harness{Kind: "refund", Home: …, Open: open})
//	}
package sourcetest

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Provider is a fake provider, empty at first, on a clock of its own.
type Provider interface {
	// Source gives a new source under test that looks at this provider and asks for
	// pages of the given size. Its requests time out within a second, and it keeps no
	// connections: net/http sends a GET again by itself over one that died, and the
	// suite counts requests.
	Source(t *testing.T, pageSize int) sources.Source
	// Now is the provider's clock, Advance moves it.
	Now() time.Time
	Advance(d time.Duration)
	// Make makes a completed effect now, as a sender would, and gives its id.
	Make(t *testing.T, e Effect) string
	// FailLate lets an effect fail that was completed, as providers do days later. It is
	// not called where Harness.Final says that they do not.
	FailLate(t *testing.T, e Effect, id string)
	// SetLag lets whatever is made from now on be seen only d later.
	SetLag(d time.Duration)
	// Break lets every request suffer the fault after the given number of good ones.
	Break(f Fault, good int)
	// Mend ends it.
	Mend()
	// Requests is how many requests came, and how many of them could change something.
	Requests() (all, writes int)
}

// Heedless is a provider that can be told to ignore the window that a list asks for. A
// Provider that is one is tested with it.
type Heedless interface {
	// IgnoreWindows lets every list show all that there is.
	IgnoreWindows()
}

// Effect is what a sender asks for.
type Effect struct {
	At        recon.Account // where; the zero value is the harness's home
	Reference string        // put under the source's marker; empty: not sent
	Key       string        // idempotency key; empty: not sent
	Parent    string        // the object it hangs under
	Money     recon.Money
}

// Fault is what goes wrong at the provider or on the way to it.
type Fault string

// The faults that every source must survive.
const (
	TooMany   Fault = "429 too many requests"
	Broken    Fault = "500 internal error"
	Proxy     Fault = "502 page of a proxy"
	Hangs     Fault = "no answer in time"
	Cut       Fault = "a reply cut in the middle"
	NotJSON   Fault = "200 that is not JSON"
	Empty     Fault = "200 with an empty object"
	Closes    Fault = "connection closed without a reply"
	NoKey     Fault = "401 unknown credentials"
	Forbidden Fault = "403 not permitted"
)

// faults gives each fault with the kinds by which a source may tell it.
var faults = map[Fault][]sources.Kind{
	TooMany:   {sources.RateLimited},
	Broken:    {sources.Unavailable},
	Proxy:     {sources.Unavailable},
	Hangs:     {sources.Timeout},
	Cut:       {sources.Truncated, sources.Unavailable, sources.Malformed},
	NotJSON:   {sources.Malformed},
	Empty:     {sources.Malformed},
	Closes:    {sources.Unavailable},
	NoKey:     {sources.BadCredentials},
	Forbidden: {sources.BadCredentials},
}

// Harness says how to open a provider and what its effects look like.
type Harness struct {
	// Open gives a fresh provider; it ends with the test.
	Open func(t *testing.T) Provider
	Kind string
	// Home and Away are two places of the source: another account, another mode, or
	// both. Stranger is a place that the source does not have.
	Home, Away, Stranger recon.Account
	// Parent gives the name of the n-th parent, as the provider writes such ids; empty for a
	// kind whose effects are not listed by what they hang under.
	Parent func(n int) string
	// Currency is one that the provider knows.
	Currency string
	// Final says that a completed effect of this kind never fails later.
	Final bool
	// Bare says that effects of this kind have no amount.
	Bare bool
	// Quiet says that no event is made when an effect of this kind comes to be.
	Quiet bool
}

// Exercise runs the whole suite.
func Exercise(t *testing.T, h Harness) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(t *testing.T, b *bench)
	}{
		{"an empty batch asks nothing", emptyBatch},
		{"an effect is found by its id", foundByID},
		{"an effect is found under its parent", foundByParent},
		{"an effect is found in the window", foundInWindow},
		{"an effect without reference is found by its key", foundByKey},
		{"effects are found with pages of 1, 2 and 3", smallPages},
		{"all effects of one reference are found", duplicates},
		{"an effect that fails late is seen failed", lateFailure},
		{"an effect is found as soon as the lag is over", readLag},
		{"nothing there is a complete look without an effect", absent},
		{"every fault is blind, however it is asked", everyFault},
		{"a list that breaks off answers only for what it read", brokenList},
		{"a place that is not the source's is blind and costs nothing", stranger},
		{"account and mode are never mixed", placesApart},
		{"an unknown account is asked everywhere", everywhere},
		{"every question is covered by a look", allCovered},
		{"a batch costs no more than its cheapest plan", cheapPlan},
		{"the order of questions changes nothing", anyOrder},
		{"a context that ends is an error and teaches nothing", contextEnds},
		{"the probe tells whether the provider answers", probe},
		{"a window is listed whole with pages of 1, 2 and 3", listedWhole},
		{"a list that breaks off goes on at its cursor", listResumes},
		{"a page claims nothing that was made after it", listWhileMaking},
		{"a list sees through a provider that ignores its window", listUnfiltered},
		{"every fault is a blind page, and its cursor stays good", everyFaultOfAPage},
		{"account and mode of a list are never mixed", listsApart},
		{"a list that is not the source's is blind and costs nothing", strangersList},
		{"a list takes no window and no cursor but its own", listRefuses},
		{"what a delivery shows is what is read", deliveredAsRead},
		{"a late failure is delivered", deliveredLateFailure},
		{"a forged or old delivery is refused", forgedDeliveries},
		{"an event that is unknown, foreign or not vouched for is no evidence", eventsThatShowNothing},
		{"deliveries are taken by many at once", takenByMany},
		{"the feed holds what was delivered", feedAsDelivered},
		{"a feed that breaks off goes on at its cursor", feedResumes},
		{"a feed that is not the source's is blind and costs nothing", feedOfStrangers},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Harness: h, Provider: h.Open(t)}
			part.run(t, b)
			if _, writes := b.Requests(); writes != 0 {
				t.Errorf("the source made %d requests that can change something; it must only read", writes)
			}
		})
	}
}

// bench is one provider under one test of the suite.
type bench struct {
	Harness
	Provider
	made int
}

// amount gives an amount of its own for every n, so that effects differ, unless they have
// none.
func (b *bench) amount(n int) recon.Money {
	if b.Bare {
		return recon.Money{}
	}
	return recon.Money{Minor: int64(1000 + n), Currency: b.Currency}
}

// sent is an operation that was sent: the effect asked for, and the question for it.
type sent struct {
	effect   Effect
	id       string // of the effect that was made; empty when none was
	question sources.Question
}

// send plans an operation with its own reference, key, parent and amount; the question
// names no id and no parent.
func (b *bench) send(name string) sent {
	b.made++
	e := Effect{At: b.Home, Reference: "op-" + name, Key: "key-" + name, Parent: b.Parent(b.made), Money: b.amount(b.made)}
	return sent{effect: e, question: sources.Question{
		Operation: recon.OperationID(e.Reference), Kind: b.Kind, Account: e.At.Account, Mode: e.At.Mode,
		Key: e.Key, Marks: []recon.Mark{recon.MarkKey, recon.MarkReference}, Money: e.Money,
		From: b.Now().Add(-recon.ClockSkew),
	}}
}

// done plans an operation whose effect was made.
func (b *bench) done(t *testing.T, name string) sent {
	t.Helper()
	s := b.send(name)
	s.id = b.Make(t, s.effect)
	return s
}

// ask asks and fails the test on an error, on looks that do not add up, and on an
// effect that is named twice.
func (b *bench) ask(t *testing.T, src sources.Source, batch ...sources.Question) sources.Answer {
	t.Helper()
	before, _ := b.Requests()
	ans, err := src.Ask(t.Context(), batch, b.Now)
	if err != nil {
		t.Fatalf("Ask: %v; a fault of the provider is a blind look, not an error", err)
	}
	checkAnswer(t, src, ans)
	b.checkCalls(t, ans, before)
	for _, q := range batch {
		if !covered(ans, q) {
			t.Errorf("no look covers the question of %s: %+v", q.Operation, ans.Looks)
		}
	}
	return ans
}

// checkCalls holds the calls that the looks tell of against the requests that the
// provider saw. A request that was given up may reach it a little later.
func (b *bench) checkCalls(t *testing.T, ans sources.Answer, before int) {
	t.Helper()
	told := 0
	for _, l := range ans.Looks {
		told += l.Calls
	}
	seen := 0
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		after, _ := b.Requests()
		if seen = after - before; seen >= told {
			break
		}
	}
	if seen != told {
		t.Errorf("looks tell of %d requests, the provider saw %d", told, seen)
	}
}

// checkAnswer holds an answer against what every answer must keep.
func checkAnswer(t *testing.T, src sources.Source, ans sources.Answer) {
	t.Helper()
	seen := map[recon.EffectIdentity]bool{}
	for _, e := range ans.Effects {
		id := e.Identity()
		if seen[id] {
			t.Errorf("effect %s is named twice", e.ID)
		}
		seen[id] = true
		if e.Source != src.Name() || e.System != src.Sheet().System || !e.Status.Valid() || e.CreatedAt.IsZero() || e.Account == "" || e.Mode == "" {
			t.Errorf("effect %s lacks source, system, status, time, account or mode: %+v", e.ID, e)
		}
	}
	for _, raw := range ans.Raw {
		if !seen[raw.Effect] {
			t.Errorf("raw bytes of %v belong to no effect of the answer", raw.Effect)
		}
	}
	ids := map[string]bool{}
	shown := map[recon.EffectIdentity]bool{}
	for _, l := range ans.Looks {
		if l.ID == "" || ids[l.ID] {
			t.Errorf("a look has no id of its own: %+v", l)
		}
		ids[l.ID] = true
		blind := l.Outcome == recon.Blind
		if blind == l.Complete || blind != (l.Fault != "") || l.At.IsZero() || l.Source != src.Name() {
			t.Errorf("a look contradicts itself: outcome %s, complete %t, fault %q, at %s", l.Outcome, l.Complete, l.Fault, l.At)
		}
		if !blind && (len(l.Found) > 0) != (l.Outcome == recon.Found) {
			t.Errorf("a look is %s with %d effects", l.Outcome, len(l.Found))
		}
		for _, id := range l.Found {
			if shown[id] = true; !seen[id] {
				t.Errorf("a look found %v, which is not among the effects", id)
			}
		}
	}
	for id := range seen {
		if !shown[id] { // who concludes something from it can name no look
			t.Errorf("no look found %v, which is among the effects", id)
		}
	}
}

// operation is the operation that a question asks for, as far as a look needs it.
func operation(q sources.Question) recon.Operation {
	return recon.Operation{
		ID: q.Operation, EffectID: q.EffectID, Key: q.Key, Parent: q.Parent, Group: q.Group,
		Account: q.Account, Mode: q.Mode, SentAt: q.From.Add(recon.ClockSkew),
	}
}

// covering gives the looks that cover a question. Where its account or mode is not
// known, every look for its kind covers it.
func covering(ans sources.Answer, q sources.Question) []recon.Look {
	return slices.DeleteFunc(slices.Clone(ans.Looks), func(l recon.Look) bool {
		if q.Account == "" || q.Mode == "" {
			return l.Kind != q.Kind
		}
		return !l.Covers(operation(q), q.Kind)
	})
}

// covered reports whether a look says something of a question: it covers it, or it found
// the effect that bears its reference.
func covered(ans sources.Answer, q sources.Question) bool {
	if len(covering(ans, q)) > 0 {
		return true
	}
	return slices.ContainsFunc(ans.Effects, func(e recon.Effect) bool {
		return e.Reference == string(q.Operation) && slices.ContainsFunc(ans.Looks, func(l recon.Look) bool { return slices.Contains(l.Found, e.Identity()) })
	})
}

// silent gives a look that covers the question, is not blind and could count as
// absence by its method: strong on the source's sheet.
func silent(src sources.Source, ans sources.Answer, q sources.Question) (recon.Look, bool) {
	for _, l := range covering(ans, q) {
		ability, _ := src.Sheet().Ability(l.Method)
		if l.Outcome != recon.Blind && ability.Consistency == recon.Strong {
			return l, true
		}
	}
	return recon.Look{}, false
}

// find gives the effect with an id in a place.
func find(ans sources.Answer, at recon.Account, id string) (recon.Effect, bool) {
	for _, e := range ans.Effects {
		if e.ID == id && e.Account == at.Account && e.Mode == at.Mode {
			return e, true
		}
	}
	return recon.Effect{}, false
}

// mustFind fails the test unless the answer holds the effect as it was made.
func (b *bench) mustFind(t *testing.T, ans sources.Answer, s sent) recon.Effect {
	t.Helper()
	e, ok := find(ans, s.effect.At, s.id)
	if !ok {
		t.Fatalf("effect %s of %s was not found among %d effects", s.id, s.question.Operation, len(ans.Effects))
	}
	if e.Money != s.effect.Money || e.Reference != s.effect.Reference || !e.Under(s.effect.Parent) || e.Kind != b.Kind {
		t.Errorf("effect %s is %+v, want what was asked for: %+v", s.id, e, s.effect)
	}
	return e
}
