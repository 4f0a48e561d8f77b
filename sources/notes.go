package sources

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Notes are what one Ask, or one Page, has learned so far: its looks, and the objects that
// it saw, each as it was last read. Every source writes its looks through it, so that blind
// and absent are told alike everywhere.
type Notes struct {
	Of   recon.SourceName
	Seen map[recon.EffectIdentity]*Sighting
	// Spare are requests that belong to no look yet: the next one takes them.
	Spare int
	looks []recon.Look
}

// Sighting is an object as it was last read.
type Sighting struct {
	Effect recon.Effect
	Raw    []byte
}

// NewNotes begins the notes of a source.
func NewNotes(source recon.SourceName) *Notes {
	return &Notes{Of: source, Seen: map[recon.EffectIdentity]*Sighting{}}
}

// Trail collects what the requests of one look said.
type Trail struct {
	Calls     int
	RequestID string // of the last one
	replies   hash.Hash
}

// Add takes one more request, by the provider's id of it, and its reply.
func (t *Trail) Add(requestID string, reply []byte) {
	if t.replies == nil {
		t.replies = sha256.New()
	}
	t.Calls++
	t.RequestID = requestID
	t.replies.Write(reply)
}

// Join takes the requests of another trail.
func (t *Trail) Join(other Trail) {
	if other.Calls == 0 {
		return
	}
	if t.replies == nil {
		t.replies = sha256.New()
	}
	t.Calls, t.RequestID = t.Calls+other.Calls, other.RequestID
	t.replies.Write(other.replies.Sum(nil))
}

// Look begins a look at a list's kind, account and mode.
func (n *Notes) Look(l List, m recon.Method, at time.Time) recon.Look {
	return recon.Look{Source: n.Of, Method: m, Kind: l.Kind, Account: l.Account, Mode: l.Mode, At: at.UTC()}
}

// Conclude records a look: blind with a fault, found with effects, else absent. A blind one
// may have shown effects before its fault: these were seen.
func (n *Notes) Conclude(l recon.Look, t Trail, found []recon.EffectIdentity, fault *Error) {
	l.Calls, l.RequestID = t.Calls+n.Spare, t.RequestID
	n.Spare = 0
	if t.replies != nil {
		l.ReplyHash = t.replies.Sum(nil)
	}
	l.Found = distinct(found)
	switch {
	case fault != nil:
		l.Outcome, l.Complete, l.Fault, l.Detail = recon.Blind, false, string(fault.Kind), fault.Op
		if fault.Err != nil {
			l.Detail += ": " + fault.Err.Error()
		}
	case len(found) > 0:
		l.Outcome, l.Complete = recon.Found, true
	default:
		l.Outcome, l.Complete = recon.Absent, true
	}
	n.looks = append(n.looks, l)
}

// Ranged records the range for which a list answers, if any. It gives what was found and lies
// in none, since a clock ahead of ours dates it later: another look must have seen that.
func (n *Notes) Ranged(l recon.Look, read recon.Window, t Trail, found []recon.EffectIdentity) (outside []recon.EffectIdentity) {
	if !read.From.Before(read.To) {
		n.Spare += t.Calls
		return found
	}
	l.Window = read
	n.Conclude(l, t, found, nil)
	return nil
}

// Outside records that effects were seen by a list that answers for no time.
func (n *Notes) Outside(l recon.Look, t Trail, found []recon.EffectIdentity) {
	if len(found) == 0 {
		return
	}
	t.Calls = 0 // they are spare
	l.Window = recon.Window{From: l.At, To: l.At}
	n.Conclude(l, t, found, nil)
}

// Blind tells of all questions of a group at once that they could not be asked.
func (n *Notes) Blind(g Group, at time.Time, fault *Error) {
	l := n.Look(g.List, recon.ByList, at)
	l.Window = recon.Window{From: Since(g.Oldest()), To: l.At}
	if youngest := g.Questions[0].From; !youngest.Before(at) {
		l.Window.To = youngest.Add(time.Second)
	}
	n.Conclude(l, Trail{}, nil, fault)
}

// Refuse tells of questions that are none of the source's, as [Partition] found them.
func (n *Notes) Refuse(g Group, sheet recon.Sheet, at time.Time) {
	n.Blind(g, at, n.Refusal("ask", g.List, sheet))
}

// Refusal says why nothing can be asked of a list, nil where it is one of the source's.
func (n *Notes) Refusal(op string, l List, sheet recon.Sheet) *Error {
	switch {
	case !slices.Contains(sheet.Kinds, l.Kind):
		return &Error{Source: n.Of, Op: op, Kind: Unsupported, Err: errors.New("this source does not observe the kind")}
	case !slices.Contains(sheet.Accounts, recon.Account{Account: l.Account, Mode: l.Mode}):
		return &Error{Source: n.Of, Op: op, Kind: WrongAccount,
			Err: errors.New("the account or mode is not one of the source's; add it to the source's accounts")}
	}
	return nil
}

// Answer gives everything in an order that does not depend on that of the questions, the
// youngest effect first.
func (n *Notes) Answer() (Answer, error) {
	var ans Answer
	for i := range n.looks {
		id, err := uuid.NewV7()
		if err != nil {
			return Answer{}, fmt.Errorf("%s: name a look: %w", n.Of, err)
		}
		n.looks[i].ID = id.String()
	}
	if last := len(n.looks) - 1; last >= 0 {
		n.looks[last].Calls += n.Spare
	}
	ans.Looks = n.looks
	all := slices.SortedFunc(maps.Values(n.Seen), func(x, y *Sighting) int {
		return cmp.Or(y.Effect.CreatedAt.Compare(x.Effect.CreatedAt), compareIdentity(x.Effect.Identity(), y.Effect.Identity()))
	})
	for _, s := range all {
		ans.Effects = append(ans.Effects, s.Effect)
		ans.Raw = append(ans.Raw, Raw{Effect: s.Effect.Identity(), Bytes: s.Raw})
	}
	return ans, nil
}

// AsPage gives the answer of one page of a list, whose only look it is.
func (n *Notes) AsPage(next string) (Page, error) {
	ans, err := n.Answer()
	if err != nil {
		return Page{}, err
	}
	return Page{Effects: ans.Effects, Raw: ans.Raw, Next: next, Look: ans.Looks[0]}, nil
}

func compareIdentity(a, b recon.EffectIdentity) int {
	return cmp.Or(cmp.Compare(a.System, b.System), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.ID, b.ID))
}

func distinct(ids []recon.EffectIdentity) []recon.EffectIdentity {
	list := slices.Clone(ids)
	slices.SortFunc(list, compareIdentity)
	return slices.Compact(list)
}
