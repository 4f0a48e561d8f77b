package ledger

import (
	_ "embed"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lookRow is a row of looks as it is written. Absent fields are NULL.
type lookRow struct {
	ID         string      `json:"look_id"`
	Source     string      `json:"source"`
	Method     string      `json:"method"`
	Outcome    string      `json:"outcome"`
	Kind       string      `json:"kind,omitempty"`
	Account    string      `json:"account,omitempty"`
	Mode       string      `json:"mode,omitempty"`
	EffectID   string      `json:"effect_id,omitempty"`
	Key        string      `json:"key,omitempty"`
	Reference  string      `json:"reference,omitempty"`
	Parent     string      `json:"parent,omitempty"`
	WindowFrom *time.Time  `json:"window_from,omitempty"`
	WindowTo   *time.Time  `json:"window_to,omitempty"`
	At         time.Time   `json:"at"`
	Complete   bool        `json:"complete"`
	Calls      int         `json:"calls"`
	RequestID  string      `json:"request_id,omitempty"`
	ReplyHash  []byte      `json:"reply_hash,omitempty"`
	Fault      string      `json:"fault,omitempty"`
	Detail     string      `json:"detail,omitempty"`
	Found      []foundItem `json:"found"`
}

// foundItem is an identity as looks.found holds it.
type foundItem struct {
	System  string `json:"system"`
	Account string `json:"account"`
	Mode    string `json:"mode"`
	ID      string `json:"id"`
}

func lookRowOf(k recon.Look) lookRow {
	r := lookRow{
		ID: k.ID, Source: string(k.Source), Method: string(k.Method), Outcome: string(k.Outcome), Kind: k.Kind,
		Account: k.Account, Mode: k.Mode, EffectID: k.EffectID, Key: k.Key, Reference: k.Reference, Parent: k.Parent,
		WindowFrom: orNull(k.Window.From), WindowTo: orNull(k.Window.To), At: stored(k.At), Complete: k.Complete, Calls: k.Calls,
		RequestID: storable(k.RequestID), ReplyHash: k.ReplyHash, Fault: storable(k.Fault), Detail: storable(k.Detail), Found: make([]foundItem, 0, len(k.Found)),
	}
	for _, id := range k.Found {
		r.Found = append(r.Found, foundItem{storable(id.System), storable(id.Account), storable(id.Mode), storable(id.ID)})
	}
	return r
}

// storable keeps a text about a look from making the evidence of a whole batch
// unstorable. It is said to people only; nothing is matched by it.
func storable(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// askable reports whether a text may be in any row. PostgreSQL refuses questions about others,
// and what one provider writes must not stop the reading of all.
func askable(s string) bool { return !strings.Contains(s, "\x00") }

// coverageRow is a row of coverage.
type coverageRow struct {
	LookID     string    `json:"look_id"`
	Source     string    `json:"source"`
	Kind       string    `json:"kind"`
	Account    string    `json:"account"`
	Mode       string    `json:"mode"`
	WindowFrom time.Time `json:"window_from"`
	WindowTo   time.Time `json:"window_to"`
	At         time.Time `json:"at"`
}

//go:embed sql/save_looks.sql
var saveLooksSQL string

// saveLooks writes the evidence: looks, and the ranges that they cover. It is
// append-only; what is there already stays as it is.
func (l *Ledger) saveLooks(with *pgx.Batch, b *Batch) error {
	if len(b.Looks) == 0 && len(b.Coverage) == 0 {
		return nil
	}
	looks := make([]lookRow, 0, len(b.Looks))
	for _, k := range b.Looks {
		looks = append(looks, lookRowOf(k))
	}
	coverage := make([]coverageRow, 0, len(b.Coverage))
	for _, c := range b.Coverage {
		coverage = append(coverage, coverageRow{
			LookID: c.LookID, Source: string(c.Source), Kind: c.Kind, Account: c.Account, Mode: c.Mode,
			WindowFrom: stored(c.Window.From), WindowTo: stored(c.Window.To), At: stored(c.At),
		})
	}
	looksJSON, err := encode(looks)
	if err != nil {
		return err
	}
	coverageJSON, err := encode(coverage)
	if err != nil {
		return err
	}
	with.Queue(saveLooksSQL, l.tenant, b.RunID, looksJSON, coverageJSON)
	return nil
}
