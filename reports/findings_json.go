package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// listedFinding is one finding of the JSON of findings list (contracts: JSON). Names may
// be added, none renamed.
type listedFinding struct {
	ID                string              `json:"id"`
	Kind              recon.FindingKind   `json:"kind"`
	Certainty         recon.Certainty     `json:"certainty"`
	State             recon.FindingState  `json:"state"`
	Source            recon.SourceName    `json:"source"`
	Operations        []recon.OperationID `json:"operation_ids"`
	EffectIDs         []string            `json:"effect_ids"`
	Observed          []recon.Difference  `json:"observed"`
	OpenedAt          time.Time           `json:"opened_at"`
	AgeSeconds        int64               `json:"age_seconds"`
	Level             int                 `json:"level"`
	Assignee          *string             `json:"assignee"`
	Money             *money              `json:"money"`
	Effects           []recon.EffectRef   `json:"effects"`
	Reason            string              `json:"reason"`
	Version           int64               `json:"version"`
	AcknowledgedUntil *time.Time          `json:"acknowledged_until,omitempty"`
	SnoozedUntil      *time.Time          `json:"snoozed_until,omitempty"`
	Proposal          *recon.Proposal     `json:"proposal,omitempty"`
	SettledAt         *time.Time          `json:"settled_at,omitempty"`
	SettledBy         string              `json:"settled_by,omitempty"`
	SettledAs         string              `json:"settled_as,omitempty"`
	EndedAt           *time.Time          `json:"ended_at,omitempty"`
	Ending            string              `json:"ending,omitempty"`
}

type money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

func listed(f FindingRow, now time.Time) listedFinding {
	d := listedFinding{
		ID: f.ID, Kind: f.Kind, Certainty: f.Certainty, State: recon.FindingState(state(f.Finding)), Source: f.Source,
		Operations: emptyNotNull(f.Operations), EffectIDs: make([]string, 0, len(f.Effects)), Observed: emptyNotNull(f.Observed),
		OpenedAt: f.OpenedAt.UTC(), AgeSeconds: int64(age(f, now) / time.Second), Level: f.Level, Effects: emptyNotNull(f.Effects),
		Reason: f.Reason, Version: f.Version, AcknowledgedUntil: orNull(f.AcknowledgedUntil), SnoozedUntil: orNull(f.SnoozedUntil),
		Proposal: f.Proposal, SettledAt: orNull(f.SettledAt), SettledBy: f.SettledBy, SettledAs: f.SettledAs,
		EndedAt: orNull(f.EndedAt), Ending: f.Ending,
	}
	for _, e := range f.Effects {
		d.EffectIDs = append(d.EffectIDs, e.ID)
	}
	if f.Assignee != "" {
		d.Assignee = &f.Assignee
	}
	if !f.Money.IsZero() {
		d.Money = &money{f.Money.Minor, f.Money.Currency}
	}
	return d
}

// FindingsJSON writes a list of findings as one JSON document.
func FindingsJSON(w io.Writer, list []FindingRow, now time.Time) error {
	documents := make([]listedFinding, 0, len(list))
	for _, f := range list {
		documents = append(documents, listed(f, now))
	}
	return writeJSON(w, documents)
}

// FindingJSON writes one finding with all that is known of it as one JSON document.
func FindingJSON(w io.Writer, s FindingStory, now time.Time) error {
	d := struct {
		Finding    listedFinding     `json:"finding"`
		Effects    []json.RawMessage `json:"effects"`
		Operations []storyDocument   `json:"operations"`
		Acts       []recon.PersonAct `json:"acts"`
	}{listed(s.FindingRow, now), make([]json.RawMessage, 0, len(s.Effects)), make([]storyDocument, 0, len(s.Stories)), emptyNotNull(s.Acts)}
	for _, e := range s.Effects {
		line, err := recon.MarshalEffect(e)
		if err != nil {
			return fmt.Errorf("write effect %s: %w", e.ID, err)
		}
		d.Effects = append(d.Effects, line)
	}
	for _, story := range s.Stories {
		document, err := storyDocumentOf(story)
		if err != nil {
			return err
		}
		d.Operations = append(d.Operations, document)
	}
	return writeJSON(w, d)
}
