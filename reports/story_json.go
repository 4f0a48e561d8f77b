package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// storyDocument is the JSON of operations show (contracts: JSON). Names may be added,
// none renamed.
type storyDocument struct {
	Operation  json.RawMessage   `json:"operation"`
	Journal    []entryDocument   `json:"journal"`
	Looks      []lookDocument    `json:"looks"`
	Effects    []json.RawMessage `json:"effects"`
	Shares     []shareDocument   `json:"shares,omitempty"` // of a group's effects, in minor units
	Findings   []findingDocument `json:"findings"`
	NextCheck  *time.Time        `json:"next_check"`
	SafeUntil  *time.Time        `json:"safe_retry_until"`
	Attempts   int               `json:"attempts"`
	UnknownFor *time.Time        `json:"unknown_since"`
}

type shareDocument struct {
	EffectID string `json:"effect_id"`
	Amount   int64  `json:"amount"`
}

type entryDocument struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Kind recon.EntryKind `json:"kind"`
	Body json.RawMessage `json:"body"`
}

type lookDocument struct {
	ID        string           `json:"id"`
	At        time.Time        `json:"at"`
	Source    recon.SourceName `json:"source"`
	Method    recon.Method     `json:"method"`
	Outcome   recon.Outcome    `json:"outcome"`
	Complete  bool             `json:"complete"`
	Fault     string           `json:"fault,omitempty"`
	RequestID string           `json:"request_id,omitempty"`
	Question  string           `json:"question"`
	Answer    string           `json:"answer"`
}

type findingDocument struct {
	ID         string              `json:"id,omitempty"`
	Kind       recon.FindingKind   `json:"kind"`
	Certainty  recon.Certainty     `json:"certainty"`
	State      recon.FindingState  `json:"state"`
	Source     recon.SourceName    `json:"source"`
	Operations []recon.OperationID `json:"operation_ids"`
	EffectIDs  []string            `json:"effect_ids"`
	Effects    []recon.EffectRef   `json:"effects"`
	Observed   []recon.Difference  `json:"observed"`
	Reason     string              `json:"reason"`
	OpenedAt   time.Time           `json:"opened_at"`
	EndedAt    *time.Time          `json:"ended_at,omitempty"`
	Ending     string              `json:"ending,omitempty"`
}

// StoryJSON writes the same as one JSON document. Nothing is left out, cut or made
// printable.
func StoryJSON(w io.Writer, s recon.Story) error {
	d, err := storyDocumentOf(s)
	if err != nil {
		return err
	}
	return writeJSON(w, d)
}

func storyDocumentOf(s recon.Story) (storyDocument, error) {
	op, err := recon.MarshalOperation(s.Operation)
	if err != nil {
		return storyDocument{}, fmt.Errorf("write operation %s: %w", s.Operation.ID, err)
	}
	d := storyDocument{
		Operation: op, NextCheck: orNull(s.Check.Next), SafeUntil: orNull(s.SafeRetryUntil()),
		Attempts: s.Operation.Attempts, UnknownFor: orNull(s.Operation.UnknownSince),
		Journal: make([]entryDocument, 0, len(s.Journal)), Looks: make([]lookDocument, 0, len(s.Looks)),
		Effects: make([]json.RawMessage, 0, len(s.Effects)), Findings: make([]findingDocument, 0, len(s.Findings)),
	}
	for _, e := range s.Journal {
		d.Journal = append(d.Journal, entryDocument{Seq: e.Seq, At: e.At.UTC(), Kind: e.Kind, Body: e.Body})
	}
	for _, l := range s.Looks {
		d.Looks = append(d.Looks, lookDocument{ID: l.ID, At: l.At.UTC(), Source: l.Source, Method: l.Method, Outcome: l.Outcome,
			Complete: l.Complete, Fault: l.Fault, RequestID: l.RequestID, Question: s.Question(l), Answer: s.Answer(l)})
	}
	for _, e := range s.Effects {
		line, err := recon.MarshalEffect(e)
		if err != nil {
			return d, fmt.Errorf("write effect %s: %w", e.ID, err)
		}
		d.Effects = append(d.Effects, line)
		if minor, ok := s.Shares[e.Identity()]; ok {
			d.Shares = append(d.Shares, shareDocument{EffectID: e.ID, Amount: minor})
		}
	}
	for _, f := range s.Findings {
		d.Findings = append(d.Findings, findingOf(s, f))
	}
	return d, nil
}

func findingOf(s recon.Story, f recon.Finding) findingDocument {
	at, how := s.Ending(f)
	d := findingDocument{ID: f.ID, Kind: f.Kind, Certainty: f.Certainty, State: recon.FindingState(state(f)), Source: f.Source,
		Operations: emptyNotNull(f.Operations), EffectIDs: []string{}, Effects: emptyNotNull(f.Effects),
		Observed: emptyNotNull(f.Observed), Reason: f.Reason, OpenedAt: f.OpenedAt.UTC(), EndedAt: orNull(at), Ending: how}
	for _, e := range f.Effects {
		d.EffectIDs = append(d.EffectIDs, e.ID)
	}
	return d
}

// emptyNotNull gives an empty list for none: empty lists are [], never null.
func emptyNotNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// writeJSON writes one document, indented, with text as it is.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
