package escalation

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Steps of a finding's telling. Each happens once per finding and destination.
const (
	StepFirst = "first" // a new message
	StepEnded = "ended" // the same message, edited to show that and how it ended
)

// Policy says who is told. Later steps of a ladder will stand here.
type Policy struct {
	Destinations []string // names; empty: findings are written and nobody is told
}

// Reason says why a finding is told now, or why it is not.
type Reason string

const (
	NeedsPerson Reason = "needs_person" // told: the first time that this finding is open
	HasEnded    Reason = "has_ended"    // told: as an edit of its message

	AlreadyTold  Reason = "already_told"   // it was open before this pass
	NamedByOther Reason = "named_by_other" // a graver one of this pass on the same operation names it
	KindNotTold  Reason = "kind_not_told"  // findings of this kind are read in reports
	EndedAtOnce  Reason = "ended_at_once"  // raised and ended within one pass
)

// Told reports whether the reason is one for telling.
func (r Reason) Told() bool { return r == NeedsPerson || r == HasEnded }

// gravity orders the kinds that need a person: first what may be happening twice or
// wrongly while people believe otherwise, last what is merely not known yet. A kind
// that is not listed is not told.
var gravity = []recon.FindingKind{
	recon.FindDuplicate, recon.FindConflict, recon.FindMismatch,
	recon.FindReversed, recon.FindMissing, recon.FindUnresolved,
}

// Graver reports whether a is to be told before b: by kind, then the one that was
// opened first, then by fingerprint, so that the order is always the same.
func Graver(a, b recon.Finding) bool {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), a.OpenedAt.Compare(b.OpenedAt),
		cmp.Compare(a.Fingerprint(), b.Fingerprint())) < 0
}

func rank(k recon.FindingKind) int {
	if i := slices.Index(gravity, k); i >= 0 {
		return i
	}
	return len(gravity)
}

// Concluded is one operation as a pass found it and what the pass decided.
type Concluded struct {
	Case     recon.Case
	Decision recon.Decision
}

// Plan says which notices follow from one pass: a message for every operation that
// came to need a person, and an edit for every finding that ended. Of several
// findings that one pass raises on an operation only the gravest has a message; it
// names the others. The same pass and the same now give the same notices.
func Plan(pass []Concluded, p Policy, now time.Time) []recon.Notice {
	var notices []recon.Notice
	for _, c := range choose(pass) {
		if !c.reason.Told() {
			continue
		}
		for _, d := range p.Destinations {
			notices = append(notices, recon.Notice{
				Finding: c.finding.Fingerprint(), Operation: c.operation, Step: c.step,
				Destination: d, Reason: string(c.reason), DueAt: now,
			})
		}
	}
	return notices
}

// choice is what becomes of one finding of a pass.
type choice struct {
	finding   recon.Finding
	operation recon.OperationID
	step      string
	reason    Reason
}

// standing is what a whole pass says of findings: one that concerns two operations
// may be known to the pass of either.
type standing struct {
	open, ends map[string]bool // by fingerprint
}

func stand(pass []Concluded) standing {
	s := standing{open: map[string]bool{}, ends: map[string]bool{}}
	for _, c := range pass {
		for _, f := range c.Case.Findings {
			s.open[f.Fingerprint()] = true
		}
		for _, fingerprint := range c.Decision.Ends {
			s.ends[fingerprint] = true
		}
	}
	return s
}

// judge says why a finding that a pass raised is told or not, for itself alone.
func (s standing) judge(f recon.Finding) Reason {
	switch fingerprint := f.Fingerprint(); {
	case rank(f.Kind) == len(gravity):
		return KindNotTold
	case s.ends[fingerprint]:
		return EndedAtOnce
	case s.open[fingerprint]:
		return AlreadyTold
	}
	return NeedsPerson
}

// judgeEnd says why the end of a finding is told or not.
func judgeEnd(f recon.Finding) Reason {
	if rank(f.Kind) == len(gravity) {
		return KindNotTold
	}
	return HasEnded
}

// choose judges every finding that the pass raised or ended, once, in the order of
// the pass.
func choose(pass []Concluded) []choice {
	s := stand(pass)
	raised := map[recon.OperationID][]recon.Finding{}
	for _, c := range pass {
		for _, f := range c.Decision.Findings {
			if s.judge(f) != NeedsPerson {
				continue
			}
			for _, op := range operations(f, c) {
				raised[op] = append(raised[op], f)
			}
		}
	}
	var choices []choice
	seen := map[string]bool{}
	add := func(f recon.Finding, c Concluded, step string, r Reason) {
		if key := step + f.Fingerprint(); !seen[key] {
			seen[key] = true
			choices = append(choices, choice{f, slices.Min(operations(f, c)), step, r})
		}
	}
	for _, c := range pass {
		for _, f := range c.Decision.Findings {
			r := s.judge(f)
			if r == NeedsPerson && named(f, operations(f, c), raised) {
				r = NamedByOther
			}
			add(f, c, StepFirst, r)
		}
		for _, f := range c.Case.Findings {
			if s.ends[f.Fingerprint()] {
				add(f, c, StepEnded, judgeEnd(f))
			}
		}
	}
	return choices
}

// named reports whether every operation of f has a graver finding in the same pass,
// whose message then names f. One operation without such a message is enough for f
// to have its own: a finding told twice costs a minute, one told to nobody costs more.
func named(f recon.Finding, ops []recon.OperationID, raised map[recon.OperationID][]recon.Finding) bool {
	for _, op := range ops {
		if !slices.ContainsFunc(raised[op], func(o recon.Finding) bool { return Graver(o, f) }) {
			return false
		}
	}
	return true
}

// operations are those that a finding is about: the ones that it names, else the one
// that it was raised on.
func operations(f recon.Finding, c Concluded) []recon.OperationID {
	if len(f.Operations) > 0 {
		return f.Operations
	}
	return []recon.OperationID{c.Case.Operation.ID}
}
