package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// pair is a match with the effect that it names.
type pair struct {
	match  recon.Match
	effect recon.Effect
}

// view is a case sorted out: what every rule asks, worked out once.
type view struct {
	c   recon.Case
	now time.Time

	linked []pair                 // proof and strong, by created_at and id
	hints  []pair                 // suggestions
	live   []pair                 // linked, in flight or completed
	equal  []pair                 // live, without differences
	done   []pair                 // equal and completed; parts of a group only when all of them are
	repaid []recon.EffectIdentity // what gave back an effect that was done once too often
	copies int                    // live effects that each stand for the operation; the parts of a group are one

	heard  bool // the source answered a look of this pass
	blind  bool // nothing could be asked in this pass
	leased bool // a live lease: its holder may still be sending
	over   bool // in progress, and its lease is over

	counted *recon.Look // the look of this pass that counts as absent, if any
	absence recon.Absence
}

func newView(c recon.Case, now time.Time) *view {
	v := &view{c: c, now: now}
	op := &c.Operation
	v.leased = op.State == recon.InProgress && now.Before(op.LeaseUntil)
	v.over = op.State == recon.InProgress && !v.leased
	v.sortMatches()
	for _, l := range c.Looks {
		if asks(l.Method) && l.Outcome != recon.Blind {
			v.heard = true
		}
	}
	v.blind = !v.heard && (len(c.Looks) > 0 || !now.Before(c.Check.Next))
	v.counted = v.countedLook()
	v.absence = v.nextAbsence()
	return v
}

// asks reports whether a look by this method is a question to the source.
func asks(m recon.Method) bool {
	return m != recon.ByStored && m != recon.ByEvent && m != recon.ByPerson
}

func (v *view) sortMatches() {
	effects := make(map[recon.EffectIdentity]recon.Effect, len(v.c.Effects))
	for _, e := range v.c.Effects {
		effects[e.Identity()] = e
	}
	for _, m := range v.c.Matches {
		e, ok := effects[m.Effect]
		if !ok || m.Operation != v.c.Operation.ID {
			continue
		}
		// A failed operation is contradicted by proof only: "it exists already" is a
		// common reason of a failure, and the effect is then somebody else's.
		if m.Certainty == recon.Proof || m.Certainty == recon.StrongSign && v.c.Operation.State != recon.Failed {
			v.linked = append(v.linked, pair{m, v.asItStands(e)})
		} else {
			v.hints = append(v.hints, pair{m, e})
		}
	}
	slices.SortFunc(v.linked, comparePairs)
	slices.SortFunc(v.hints, comparePairs)
	for _, p := range v.linked {
		if !p.effect.Status.Live() {
			continue
		}
		v.live = append(v.live, p)
		if p.match.Equal() {
			v.equal = append(v.equal, p)
			if p.effect.Status == recon.Completed {
				v.done = append(v.done, p)
			}
		}
	}
	v.dropRepaid()
	v.joinParts()
}

// joinParts makes one of the effects that stand for the operation together: they are
// one copy, and it is done when every part is.
func (v *view) joinParts() {
	isPart := func(p pair) bool { return p.match.Part }
	parts, waits := 0, false
	for _, p := range v.equal {
		if isPart(p) {
			parts++
			waits = waits || p.effect.Status != recon.Completed
		}
	}
	v.copies = len(v.live) - parts + min(parts, 1)
	if waits {
		v.done = slices.DeleteFunc(v.done, isPart)
	}
}

func comparePairs(a, b pair) int {
	return cmp.Or(
		a.effect.CreatedAt.Compare(b.effect.CreatedAt), cmp.Compare(a.effect.ID, b.effect.ID),
		cmp.Compare(a.effect.System, b.effect.System), cmp.Compare(a.effect.Account, b.effect.Account),
		cmp.Compare(a.effect.Mode, b.effect.Mode), cmp.Compare(a.match.Basis, b.match.Basis),
	)
}

// closable keeps the pairs that may close the operation in its state. While a lease
// is live, and once a person has it, only proof may.
func (v *view) closable(pairs []pair) []pair {
	if !v.leased && v.c.Operation.State != recon.ManualReview {
		return pairs
	}
	return slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return p.match.Certainty != recon.Proof })
}

// state is the operation's; a short name for what rules ask most.
func (v *view) state() recon.State { return v.c.Operation.State }

// toReview is where a finding that needs a person leads: manual_review where that is
// legal, by way of unknown from a lease that is over.
func (v *view) toReview() recon.State {
	if v.over {
		return recon.Unknown
	}
	if v.leased {
		return v.state()
	}
	return recon.ManualReview
}

// toUnknown is where an operation goes whose effect is known and not final.
func (v *view) toUnknown() recon.State {
	if v.state() == recon.Pending || v.over {
		return recon.Unknown
	}
	return v.state()
}

// since is when the operation became unknown, as well as anybody knows.
func (v *view) since() time.Time {
	op := &v.c.Operation
	switch {
	case !op.UnknownSince.IsZero():
		return op.UnknownSince
	case !op.SentAt.IsZero():
		return op.SentAt
	}
	return op.CreatedAt
}

func (v *view) age() time.Duration { return v.now.Sub(v.since()) }

// what names the operation for a sentence: "refund of 42.00 EUR for order:4417".
func (v *view) what() string {
	op := &v.c.Operation
	s := v.noun()
	if !op.Money.IsZero() {
		s += " of " + op.Money.Text(v.c.Policy.Exponents)
	}
	return s + " for " + op.Target
}

// noun names what the action makes.
func (v *view) noun() string {
	if v.c.Policy.Effect != "" {
		return recon.Noun(v.c.Policy.Effect)
	}
	return v.c.Operation.Action
}

// tell names effects for a sentence: "re_1 (completed, 42.00 EUR)".
func (v *view) tell(pairs []pair) string {
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = fmt.Sprintf("%s (%s, %s)", p.effect.ID, p.effect.Status.Text(), p.effect.Money.Text(v.c.Policy.Exponents))
		if p.effect.Money.IsZero() {
			texts[i] = fmt.Sprintf("%s (%s)", p.effect.ID, p.effect.Status.Text())
		}
	}
	return strings.Join(texts, ", ")
}

// how says by what an effect was recognised.
func how(m recon.Match) string {
	switch m.Basis {
	case recon.OnReference:
		if m.Group != nil && m.Certainty == recon.Proof {
			return "by the reference of group " + m.Group.Name
		}
		return "by our reference"
	case recon.OnEffectID:
		return "by its id"
	case recon.OnKey:
		return "by the idempotency key"
	case recon.OnNaturalReference:
		return "by its natural reference"
	case recon.OnCandidate:
		return "by parent and amount only"
	case recon.OnLookalike:
		return "by a reference that looks like ours"
	}
	return "because a person adopted it"
}

// hint ends a sentence with what may belong to the operation, empty where nothing may.
func (v *view) hint() string {
	if len(v.hints) == 0 {
		return ""
	}
	texts := make([]string, 0, len(v.hints))
	for _, p := range v.hints {
		texts = append(texts, fmt.Sprintf("%s (%s, %s%s)", p.effect.ID, p.effect.Status.Text(), how(p.match), refusal(p.match)))
	}
	return "; not proven, but it could be " + strings.Join(texts, ", ")
}

// refusal says why a suggestion is no more than that where the effect is a group's: a
// further link would leave a rest.
func refusal(m recon.Match) string {
	if m.Group == nil {
		return ""
	}
	text := "; it is that of group " + m.Group.Name
	for _, d := range m.Differences {
		if d.Field == "rest" {
			text += ", which uses it up, and a further link would leave " + d.Ours
		}
	}
	return text
}

// lookIDs gives the looks of this pass that bear on the decision: those that saw a
// linked effect, also before they met a fault, or, where nothing is linked, all that were
// answered.
func (v *view) lookIDs(d recon.Decision) []string {
	if d.Blind {
		return nil
	}
	var ids []string
	for _, l := range v.c.Looks {
		saw := slices.ContainsFunc(v.linked, func(p pair) bool { return slices.Contains(l.Found, p.effect.Identity()) })
		if saw || len(v.linked) == 0 && l.Outcome != recon.Blind {
			ids = append(ids, l.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// knowsEffect reports whether the effect that the operation knows by id is linked, or
// none is known.
func (v *view) knowsEffect() bool {
	id := v.c.Operation.EffectID
	return id == "" || slices.ContainsFunc(v.linked, func(p pair) bool { return p.effect.ID == id })
}
