package recon

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Title says in one line what the operation is: "refund of 42.00 EUR for order:4417".
func (s Story) Title() string {
	what := Noun(s.Policy.Effect)
	if s.Policy.Effect == "" {
		what = s.Operation.Action
	}
	if !s.Operation.Money.IsZero() {
		what += " of " + s.Operation.Money.Text(s.Policy.Exponents)
	}
	if s.Operation.Target != "" {
		what += " for " + s.Operation.Target
	}
	return what
}

// Question says in words what a look asked, and of whom; times stand in UTC.
func (s Story) Question(l Look) string { return s.QuestionIn(l, time.UTC) }

// QuestionIn is Question with times in a zone.
func (s Story) QuestionIn(l Look, zone *time.Location) string {
	kind, who := Noun(l.Kind), string(l.Source)
	switch {
	case l.Method == ByStored:
		return "looked among the stored effects"
	case l.Method == ByEvent:
		return who + " sent an event"
	case l.Method == ByPerson:
		return "a person looked"
	case l.IsTestimony():
		return fmt.Sprintf("asked the witness %s about %s", l.Kind, Printable(l.Reference))
	case l.EffectID != "":
		return fmt.Sprintf("asked %s for %s %s", who, kind, l.EffectID)
	case l.Key != "":
		return fmt.Sprintf("asked %s for a %s made with our key", who, kind)
	case l.Method == BySearch:
		return fmt.Sprintf("searched %s for a %s with our reference", who, kind)
	case l.Reference != "":
		return fmt.Sprintf("asked %s for a %s with our reference", who, kind)
	case l.Parent != "":
		return fmt.Sprintf("listed every %s under %s at %s", kind, l.Parent, who)
	case l.Method == ByFile:
		return "looked through the imported files of " + who
	case l.Method == ByChanges:
		return "read the changes that " + who + " told"
	}
	return fmt.Sprintf("listed every %s since %s at %s", kind, TimeText(l.Window.From, zone), who)
}

// Answer says in words what a look brought for this operation. A list finds other
// operations' effects as well; only those linked to this one are named.
func (s Story) Answer(l Look) string {
	if l.IsTestimony() && l.Outcome != Blind {
		return l.Detail
	}
	switch l.Outcome {
	case Blind:
		return "could not look: " + FaultText(l.Fault)
	case Absent:
		if !l.Complete {
			return "not seen, but the look was not complete"
		}
		return "not there"
	}
	var ours []string
	for _, e := range s.Effects {
		for _, id := range l.Found {
			if id == e.Identity() {
				ours = append(ours, fmt.Sprintf("%s (%s)", e.ID, e.Status.Text()))
			}
		}
	}
	switch {
	case len(ours) > 0:
		return "found " + strings.Join(ours, ", ")
	case !l.Complete:
		return "ours was not seen, but the look was not complete"
	}
	if len(l.Found) == 0 { // a whole list, whose pages have looks of their own
		return "others there, none of them ours"
	}
	return fmt.Sprintf("%d there, none of them ours", len(l.Found))
}

// Text says in words what became of an effect.
func (s EffectStatus) Text() string {
	switch s {
	case InFlight:
		return "in flight"
	case EffectFailed:
		return "failed"
	}
	return string(s)
}

// SafeRetryUntil is the instant up to which the same request may be sent again under
// the same key without doing it twice; zero when no such instant is known: nothing
// was sent yet, or the provider keeps no keys.
func (s Story) SafeRetryUntil() time.Time {
	if s.Operation.KeyExpiresAt.IsZero() {
		return time.Time{}
	}
	return s.Operation.KeyExpiresAt.Add(-s.Policy.KeyMargin.Std())
}

// Releasable reports whether a person may have it sent once more under its key, as far as
// that can be seen beforehand; the ledger has the last word. The key must serve until the
// lease of that attempt is over.
func (s Story) Releasable(now time.Time) bool {
	lease := min(s.Policy.LeaseMax.Std(), 5*time.Minute)
	return s.Kept && s.Operation.LastClass != ClassStoredError && s.Operation.Attempts < s.Policy.PerOperation &&
		now.Add(lease).Before(s.SafeRetryUntil())
}

// SafeRetry says in words how long a repeat under the same key stays safe: how long
// from now, and when in a zone, since a message is read later than it is written. It
// is empty for a closed operation, for which the question does not arise.
func (s Story) SafeRetry(now time.Time, zone *time.Location) string {
	until := s.SafeRetryUntil()
	switch {
	case s.Operation.State == Succeeded || s.Operation.State == Failed:
		return ""
	case until.IsZero() && s.Policy.KeyLifetime == 0:
		return "there is no safe retry: the provider keeps no keys"
	case until.IsZero() && !s.Operation.SentAt.IsZero():
		return "there is no safe retry: it is not known until when its key serves"
	case until.IsZero():
		return "nothing was sent yet"
	case !now.Before(until):
		return "safe retry ended " + Duration(now.Sub(until)).Text() + " ago, at " + TimeText(until, zone) + ": sending it again could do it twice"
	case s.Operation.LastClass == ClassStoredError:
		return "a retry with the same key only repeats the provider's stored error"
	}
	return "safe retry ends in " + Duration(until.Sub(now)).Text() + ", at " + TimeText(until, zone) + ", same key only"
}

// Since is when the operation's outcome came into question: when it became unknown,
// else when it was opened.
func (s Story) Since() time.Time {
	if !s.Operation.UnknownSince.IsZero() {
		return s.Operation.UnknownSince
	}
	return s.Operation.CreatedAt
}

// Ending says when and how a finding ended: in its own words, else in those of the
// decision that ended it. It is zero and empty while the finding is open.
func (s Story) Ending(f Finding) (at time.Time, how string) {
	if f.Open() {
		return time.Time{}, ""
	}
	at, how = f.EndedAt, f.Ending
	for _, e := range s.Journal {
		var body struct {
			Reason string
			Ended  []struct{ ID string }
		}
		if json.Unmarshal(e.Body, &body) != nil {
			continue // an entry that we cannot read ended nothing that we know of
		}
		for _, ended := range body.Ended {
			if ended.ID != f.ID || f.ID == "" {
				continue
			}
			if f.EndedAt.IsZero() {
				at = e.At
			}
			if f.Ending == "" {
				how = body.Reason // the last one holds: it may have been open twice
			}
		}
	}
	return at, how
}
