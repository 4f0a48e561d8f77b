package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Verdict is how the product did, held against the truth. Its JSON is that of the
// contract's demo; what has no name there is for the story.
type Verdict struct {
	Seed             uint64                    `json:"seed"`
	Operations       int                       `json:"operations"`
	Effects          int                       `json:"effects"`
	SentUnknown      int                       `json:"sent_unknown"`
	ClosedByEvidence int                       `json:"closed_by_evidence"`
	Escalated        int                       `json:"escalated"`
	Wrong            int                       `json:"wrong"`
	Findings         map[recon.FindingKind]int `json:"findings"`
	Planted          map[recon.FindingKind]int `json:"planted"`
	ProviderCalls    int                       `json:"provider_calls"`
	SimulatedHours   int                       `json:"simulated_hours"`
	Messages         int                       `json:"messages"`
	Report           string                    `json:"report"`

	// Faults name everything that is wrong, one sentence each.
	Faults []string `json:"-"`
	// Tales are the operations that the story tells, one of each fate.
	Tales []Tale `json:"-"`
	// Posts are the messages that went to people, as they stand in the end.
	Posts []string `json:"-"`
}

// Tale is one operation as the story tells it.
type Tale struct {
	Fate  string
	Told  []string // what the agent was told
	Truth []stripetest.Refund
	Story recon.Story
}

// judge reads the ledger and the provider's books and compares.
func (w *World) judge(ctx context.Context) (Verdict, error) {
	v := Verdict{
		Seed: w.options.Seed, Operations: len(w.intents), ProviderCalls: w.calls,
		SimulatedHours: int(worldHours.Hours()),
		Findings:       map[recon.FindingKind]int{}, Planted: map[recon.FindingKind]int{},
	}
	truth := map[recon.OperationID][]stripetest.Refund{}
	for _, r := range w.stripe.Refunds() {
		truth[recon.OperationID(r.Metadata[marker])] = append(truth[recon.OperationID(r.Metadata[marker])], r)
		v.Effects++
	}
	found, err := w.ledger.Findings(ctx, ledger.FindingFilter{Limit: 10_000})
	if err != nil {
		return v, err
	}
	for _, i := range w.intents {
		story, err := w.ledger.Story(ctx, i.id)
		if err != nil {
			return v, err
		}
		w.judgeOne(&v, i, story, truth[i.id])
	}
	w.judgeFindings(&v, found)
	w.collectPosts(&v)
	v.Wrong = len(v.Faults)
	return v, nil
}

// judgeOne holds one operation against the provider's books.
func (w *World) judgeOne(v *Verdict, i intent, s recon.Story, truth []stripetest.Refund) {
	state := s.Operation.State
	if i.fate.unknown {
		v.SentUnknown++
		if closedByEvidence(s) {
			v.ClosedByEvidence++
		}
		if len(s.Findings) > 0 {
			v.Escalated++
		}
	}
	live := slices.DeleteFunc(slices.Clone(truth), func(r stripetest.Refund) bool {
		return r.Status == "failed" || r.Status == "canceled"
	})
	switch {
	case state == recon.Succeeded && (len(live) != 1 || live[0].Amount != i.money.Minor || live[0].ID != s.Operation.EffectID):
		v.fault(i, "closed as succeeded, and the provider has %d live refunds of it", len(live))
	case state == recon.Failed && len(live) > 0:
		v.fault(i, "closed as failed, and the provider has %s", live[0].ID)
	case state != i.fate.final:
		v.fault(i, "ended %s, and the truth demands %s", state, i.fate.final)
	}
	if len(truth) > 1 {
		v.fault(i, "has %d effects", len(truth))
	}
	if !slices.ContainsFunc(v.Tales, func(t Tale) bool { return t.Fate == i.fate.name }) {
		v.Tales = append(v.Tales, Tale{Fate: i.fate.name, Told: w.told[i.id], Truth: truth, Story: s})
	}
}

// judgeFindings compares the findings that were made with those that the truth
// demands, one by one.
func (w *World) judgeFindings(v *Verdict, found []ledger.FindingRow) {
	type finding struct {
		kind recon.FindingKind
		op   recon.OperationID
	}
	open := map[finding]int{}
	for _, i := range w.intents {
		for _, k := range i.fate.findings {
			open[finding{k, i.id}]++
			v.Planted[k]++
		}
	}
	if w.outageSeen() {
		open[finding{kind: recon.FindBlind}]++
		v.Planted[recon.FindBlind]++
	}
	for _, f := range found {
		v.Findings[f.Kind]++
		about := finding{kind: f.Kind}
		if len(f.Operations) > 0 {
			about.op = f.Operations[0]
		}
		open[about]--
	}
	keys := slices.SortedFunc(maps.Keys(open), func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.kind, b.kind))
	})
	for _, k := range keys {
		switch n := open[k]; {
		case n > 0:
			v.Faults = append(v.Faults, fmt.Sprintf("%s: the truth demands %s, and nobody found it", k.op, k.kind))
		case n < 0:
			v.Faults = append(v.Faults, fmt.Sprintf("%s: %s was found, and nobody planted it", k.op, k.kind))
		}
	}
}

// outageSeen reports whether the provider turned the product away early enough in its
// outage that the product must have told people. The provider's own log says so.
func (w *World) outageSeen() bool {
	blindAfter := recon.DefaultPolicy().BlindAfter.Std()
	return slices.ContainsFunc(w.stripe.Calls(), func(c stripetest.Call) bool {
		return !c.Write() && c.Status == 503 && c.At.Before(epoch.Add(outageEnd-blindAfter-2*time.Minute))
	})
}

func (v *Verdict) fault(i intent, format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf("%s (%s): %s", i.id, i.fate.name, fmt.Sprintf(format, args...)))
}

// closedByEvidence reports whether the operation was closed by a decision on looks,
// not by its sender's answer.
func closedByEvidence(s recon.Story) bool {
	if s.Operation.State.Open() {
		return false
	}
	for n := len(s.Journal) - 1; n >= 0; n-- {
		var body struct{ To recon.State }
		if json.Unmarshal(s.Journal[n].Body, &body) == nil && body.To == s.Operation.State {
			return s.Journal[n].Kind == recon.EntryDecision
		}
	}
	return false
}

// collectPosts takes the messages as they stand, those that still wait for a person
// first.
func (w *World) collectPosts(v *Verdict) {
	messages := w.slack.Messages(destination)
	slices.SortStableFunc(messages, func(a, b slacktest.Message) int { return cmp.Compare(min(a.Edits, 1), min(b.Edits, 1)) })
	for _, m := range messages {
		v.Posts = append(v.Posts, m.Text)
	}
	v.Messages = len(v.Posts)
}
