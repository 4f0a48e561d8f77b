package webhook

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Event is the body of a request. A field that says nothing is left out; new ones may
// be added.
type Event struct {
	// Type is "told" for what somebody must know now, "changed" where that is so no longer
	// or differs, "digest" and "report" once a day.
	Type    string    `json:"type"`
	Notice  string    `json:"notice"` // the same for every try of a step
	Step    string    `json:"step,omitempty"`
	Reason  string    `json:"reason"` // step_due, pause_over, changed, has_ended…
	Mention []string  `json:"mention,omitempty"`
	At      time.Time `json:"at"`
	// Repeat says that an earlier try may have arrived; its Idempotency-Key is the same.
	Repeat bool `json:"repeat,omitempty"`
	// StandsInFor names the destination that would not take it.
	StandsInFor string `json:"stands_in_for,omitempty"`

	Finding   *Finding   `json:"finding,omitempty"`
	Operation *Operation `json:"operation,omitempty"`
	Incident  *Incident  `json:"incident,omitempty"`
	Digest    *Digest    `json:"digest,omitempty"`
	Report    *Report    `json:"report,omitempty"`
}

// Money is an amount in minor units.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Finding is what a person may have to act on.
type Finding struct {
	ID           string             `json:"id"`
	Kind         recon.FindingKind  `json:"kind"`
	Text         string             `json:"text"`   // what is wrong, in words
	Advice       string             `json:"advice"` // what to do first
	Certainty    recon.Certainty    `json:"certainty"`
	State        recon.FindingState `json:"state"`
	Version      int64              `json:"version"`
	Source       recon.SourceName   `json:"source"`
	Reason       string             `json:"reason"`
	OperationIDs []string           `json:"operation_ids"`
	EffectIDs    []string           `json:"effect_ids"`
	Money        *Money             `json:"money,omitempty"`
	OpenedAt     time.Time          `json:"opened_at"`
	EndedAt      *time.Time         `json:"ended_at,omitempty"`
	Ending       string             `json:"ending,omitempty"`
	Assignee     string             `json:"assignee,omitempty"`
	PausedUntil  *time.Time         `json:"paused_until,omitempty"`
}

// Operation is the first one that a finding is about.
type Operation struct {
	ID             string      `json:"id"`
	Title          string      `json:"title"` // "refund of 42.00 EUR for order:4417"
	Action         string      `json:"action"`
	Target         string      `json:"target"`
	State          recon.State `json:"state"`
	EffectID       string      `json:"effect_id,omitempty"`
	SafeRetryUntil *time.Time  `json:"safe_retry_until,omitempty"` // under the same key only
	NextCheck      *time.Time  `json:"next_check,omitempty"`
}

// Incident is many findings told as one. Kind blind: the source cannot be asked.
type Incident struct {
	ID        string            `json:"id"`
	Kind      recon.FindingKind `json:"kind"`
	Source    recon.SourceName  `json:"source"`
	Open      int               `json:"open"`
	Total     int               `json:"total"`
	Succeeded int               `json:"succeeded"`
	Money     []Money           `json:"money"`
	Oldest    *time.Time        `json:"oldest,omitempty"`
	OpenedAt  time.Time         `json:"opened_at"`
	EndedAt   *time.Time        `json:"ended_at,omitempty"`
	DownSince *time.Time        `json:"down_since,omitempty"`
	Top       []string          `json:"top"` // ids of the oldest operations, or findings without one
}

// Digest is how findings stand.
type Digest struct {
	Day         string       `json:"day"`
	From        time.Time    `json:"from"`
	Opened      int          `json:"opened"`
	Ended       int          `json:"ended"`
	Undelivered int          `json:"undelivered"`
	Down        []string     `json:"down"`
	Kinds       []DigestKind `json:"kinds"`
}

// DigestKind is one kind of a digest.
type DigestKind struct {
	Kind     recon.FindingKind `json:"kind"`
	Open     int               `json:"open"`
	Assigned int               `json:"assigned"`
	Oldest   *time.Time        `json:"oldest,omitempty"`
	Money    []Money           `json:"money"`
	Opened   int               `json:"opened"`
	Ended    int               `json:"ended"`
}

// event writes a message for programs. It holds what a message for people shows, and
// no request, metadata or key of an operation.
func event(m escalation.Message) Event {
	e := Event{
		Type: "told", Notice: m.Notice, Step: m.Step, Reason: string(m.Reason), Mention: m.Mention, At: m.Now.UTC(),
		Repeat: m.Repeat, StandsInFor: m.Refused,
	}
	if m.Act == recon.ActEdit {
		e.Type = "changed"
	}
	switch {
	case m.Incident != nil:
		e.Incident = incident(*m.Incident)
	case m.Digest != nil:
		e.Type, e.Digest = "digest", digest(*m.Digest)
	case m.Report != nil:
		e.Type, e.Report = "report", report(*m.Report)
	default:
		e.Finding = finding(m)
		if m.Story.Operation.ID != "" {
			e.Operation = operation(m.Story)
		}
	}
	return e
}

func finding(m escalation.Message) *Finding {
	f := m.About
	out := &Finding{
		ID: f.ID, Kind: f.Kind, Text: f.Kind.Text(), Advice: f.Kind.Advice(), Certainty: f.Certainty, State: f.State, Version: f.Version,
		Source: f.Source, Reason: f.Reason, OperationIDs: make([]string, 0, len(f.Operations)), EffectIDs: make([]string, 0, len(f.Effects)),
		OpenedAt: f.OpenedAt.UTC(), Assignee: m.Assignee, PausedUntil: instant(m.PausedUntil),
	}
	for _, o := range f.Operations {
		out.OperationIDs = append(out.OperationIDs, string(o))
	}
	for _, x := range f.Effects {
		out.EffectIDs = append(out.EffectIDs, x.ID)
	}
	if !f.Money.IsZero() {
		out.Money = &Money{f.Money.Minor, f.Money.Currency}
	}
	at, how := m.Story.Ending(f)
	out.EndedAt, out.Ending = instant(at), how
	return out
}

func operation(s recon.Story) *Operation {
	o := s.Operation
	out := &Operation{
		ID: string(o.ID), Title: s.Title(), Action: o.Action, Target: o.Target, State: o.State, EffectID: o.EffectID, NextCheck: instant(s.Check.Next),
	}
	if o.State != recon.Succeeded && o.State != recon.Failed {
		out.SafeRetryUntil = instant(s.SafeRetryUntil())
	}
	return out
}

func incident(i recon.Incident) *Incident {
	out := &Incident{
		ID: i.ID, Kind: i.Kind, Source: i.Source, Open: i.Open, Total: i.Total, Succeeded: i.Succeeded, Money: moneys(i.Money),
		Oldest: instant(i.Oldest), OpenedAt: i.OpenedAt.UTC(), EndedAt: instant(i.EndedAt), DownSince: instant(i.DownSince),
		Top: make([]string, 0, len(i.Top)),
	}
	for _, m := range i.Top {
		id := string(m.Operation)
		if id == "" {
			id = m.Finding
		}
		out.Top = append(out.Top, id)
	}
	return out
}

func digest(d recon.Digest) *Digest {
	out := &Digest{
		Day: d.Day, From: d.From.UTC(), Opened: d.Opened, Ended: d.Ended, Undelivered: d.Undelivered,
		Down: make([]string, 0, len(d.Down)), Kinds: make([]DigestKind, 0, len(d.Kinds)),
	}
	for _, s := range d.Down {
		out.Down = append(out.Down, string(s))
	}
	for _, k := range d.Kinds {
		out.Kinds = append(out.Kinds, DigestKind{
			Kind: k.Kind, Open: k.Open, Assigned: k.Assigned, Oldest: instant(k.Oldest), Money: moneys(k.Money), Opened: k.Opened, Ended: k.Ended,
		})
	}
	return out
}

func moneys(sums []recon.Money) []Money {
	out := make([]Money, 0, len(sums))
	for _, m := range sums {
		out = append(out, Money{m.Minor, m.Currency})
	}
	return out
}

// instant gives nil, which is left out, for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
