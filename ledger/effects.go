package ledger

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	_ "embed" // the statements over twenty lines are files
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lockEffectsSQL locks effects in the order of their identity, so that two writers of
// the same effects wait for each other instead of deadlocking. LATERAL makes each one an
// index probe, also where the table has no statistics yet.
const lockEffectsSQL = `
SELECT ` + effectColumns + `, e.seen_at, m.role
FROM (
	SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS i (system, account, mode, id)
	ORDER BY i.system, i.account, i.mode, i.id
) i
CROSS JOIN LATERAL (
	SELECT * FROM reconciler.effects e
	WHERE e.tenant = $1 AND e.system = i.system AND e.account = i.account AND e.mode = i.mode AND e.id = i.id
	FOR UPDATE
) e
LEFT JOIN LATERAL (
	SELECT m.role FROM reconciler.matches m
	WHERE m.tenant = $1 AND m.system = e.system AND m.account = e.account AND m.mode = e.mode AND m.effect_id = e.id
	OFFSET 0
) m ON true`

// lockEffects reads and locks those of the effects that are stored, and gives them once
// the batch was sent.
func (l *Ledger) lockEffects(with *pgx.Batch, ids []recon.EffectIdentity) map[recon.EffectIdentity]held {
	out := make(map[recon.EffectIdentity]held, len(ids))
	if len(ids) == 0 {
		return out
	}
	c := identityColumns(ids)
	var h held
	into := append(effectFields(&h.effect), instant(&h.seenAt), text(&h.role))
	with.Queue(lockEffectsSQL, l.tenant, c[0], c[1], c[2], c[3]).Query(eachRow(into, func() error {
		h.effect = normal(h.effect)
		out[h.effect.Identity()] = h
		// The driver fills slices anew, but the scanned struct is used again.
		h.effect.Metadata, h.effect.OtherParents, h.effect.Fee, h.effect.Net, h.effect.ParentTotal = nil, nil, nil, nil, nil
		return nil
	}))
	return out
}

// identityColumns are the columns of identities, but for those that no row can have.
func identityColumns(ids []recon.EffectIdentity) (c [4][]string) {
	for i := range c {
		c[i] = make([]string, 0, len(ids))
	}
	for _, id := range ids {
		if !askable(id.System + id.Account + id.Mode + id.ID) {
			continue
		}
		c[0], c[1] = append(c[0], id.System), append(c[1], id.Account)
		c[2], c[3] = append(c[2], id.Mode), append(c[3], id.ID)
	}
	return c
}

// effectRow is a row of effects as it is written. Absent fields are NULL.
type effectRow struct {
	System             string          `json:"system"`
	Account            string          `json:"account"`
	Mode               string          `json:"mode"`
	ID                 string          `json:"id"`
	Source             string          `json:"source"`
	Kind               string          `json:"kind"`
	Status             string          `json:"status"`
	Amount             int64           `json:"amount,omitempty"`
	Currency           string          `json:"currency,omitempty"`
	Parent             string          `json:"parent,omitempty"`
	OtherParents       []string        `json:"other_parents,omitempty"`
	Target             string          `json:"target,omitempty"`
	Reference          string          `json:"reference,omitempty"`
	NaturalReference   string          `json:"natural_reference,omitempty"`
	Key                string          `json:"key,omitempty"`
	CreatedAt          time.Time       `json:"created_at"`
	UpdatedAt          *time.Time      `json:"updated_at,omitempty"`
	Fee                *int64          `json:"fee,omitempty"`
	Net                *int64          `json:"net,omitempty"`
	SettlementAmount   int64           `json:"settlement_amount,omitempty"`
	SettlementCurrency string          `json:"settlement_currency,omitempty"`
	CreatedBy          string          `json:"created_by,omitempty"`
	FailureReason      string          `json:"failure_reason,omitempty"`
	CausedBy           string          `json:"caused_by,omitempty"`
	ParentTotal        *int64          `json:"parent_total,omitempty"`
	Metadata           json.RawMessage `json:"metadata,omitempty"`
	Owner              string          `json:"owner,omitempty"`
	NeedsRead          bool            `json:"needs_read"`
	SeenAt             *time.Time      `json:"seen_at,omitempty"` // nil keeps seen_at, look and blob
	LookID             string          `json:"look_id,omitempty"`
	BlobID             string          `json:"blob_id,omitempty"`
}

func rowOf(e recon.Effect) effectRow {
	return effectRow{
		System: e.System, Account: e.Account, Mode: e.Mode, ID: e.ID, Source: string(e.Source), Kind: e.Kind, Status: string(e.Status),
		Amount: e.Money.Minor, Currency: e.Money.Currency, Parent: e.Parent, OtherParents: e.OtherParents, Target: e.Target,
		Reference: e.Reference, NaturalReference: e.NaturalReference, Key: e.Key, CreatedAt: stored(e.CreatedAt), UpdatedAt: orNull(e.UpdatedAt),
		Fee: e.Fee, Net: e.Net, SettlementAmount: e.Settlement.Minor, SettlementCurrency: e.Settlement.Currency, CreatedBy: e.CreatedBy,
		FailureReason: e.FailureReason, CausedBy: e.CausedBy, ParentTotal: e.ParentTotal, Metadata: e.Metadata, Owner: e.Owner, NeedsRead: e.NeedsRead,
	}
}

// changeRow is a row of effect_changes. Its id is a hash of what it says, so that the
// same observation told again adds nothing.
type changeRow struct {
	System   string         `json:"system"`
	Account  string         `json:"account"`
	Mode     string         `json:"mode"`
	ID       string         `json:"id"`
	ChangeID string         `json:"change_id"`
	Before   map[string]any `json:"before"`
	After    map[string]any `json:"after"`
	LookID   string         `json:"look_id,omitempty"`
}

// matchRow is a row of matches.
type matchRow struct {
	System    string `json:"system"`
	Account   string `json:"account"`
	Mode      string `json:"mode"`
	EffectID  string `json:"effect_id"`
	Operation string `json:"operation_id"`
	Basis     string `json:"basis"`
	Certainty string `json:"certainty"`
	Role      string `json:"role"`
	LookID    string `json:"look_id,omitempty"`
}

// shelf is what a batch does to effects, worked out before anything is written.
type shelf struct {
	rows    map[recon.EffectIdentity]*effectRow // to be written
	fresh   map[recon.EffectIdentity]bool       // those of rows that are not stored yet
	changes []changeRow
	matches []matchRow
	blobs   []blobRow
	groups  []groupRow
	shares  []shareRow
	grouped map[recon.EffectIdentity]bool // those of groups
}

// blobRow keeps what the provider sent. Chains hold only its salted hash, so that it
// can be erased.
type blobRow struct {
	id    string
	salt  []byte
	bytes []byte
	about string // the effect that it shows, by which it is found to be erased
}

// arrange merges what was seen into what is stored, and links what the surviving
// decisions link.
func arrange(stored map[recon.EffectIdentity]held, b *Batch, links []recon.Match) (shelf, error) {
	s := shelf{rows: map[recon.EffectIdentity]*effectRow{}, fresh: map[recon.EffectIdentity]bool{}}
	looks := lookOf(slices.Concat(b.Looks, b.SeenBy))
	for _, o := range observations(b, looks) {
		s.observe(stored, o, b.Now)
	}
	if err := s.keepRaw(b.Raw); err != nil {
		return s, err
	}
	for _, m := range links {
		if m.Group != nil {
			s.linkGroup(stored, m, looks)
		} else {
			s.link(stored, m, looks)
		}
	}
	return s, nil
}

// lookOf finds the look that an effect was seen by: the first one that found it.
func lookOf(looks []recon.Look) map[recon.EffectIdentity]*recon.Look {
	by := map[recon.EffectIdentity]*recon.Look{}
	for i := range looks {
		for _, id := range looks[i].Found {
			if by[id] == nil {
				by[id] = &looks[i]
			}
		}
	}
	return by
}

// observations gives each effect of the batch once, in the order of their identity.
// One that is named twice is taken at its furthest status.
func observations(b *Batch, looks map[recon.EffectIdentity]*recon.Look) []seen {
	at := make(map[recon.EffectIdentity]int, len(b.Effects))
	out := make([]seen, 0, len(b.Effects))
	for _, e := range b.Effects {
		id := e.Identity()
		if i, twice := at[id]; twice {
			if e.Status.Rank() > out[i].effect.Status.Rank() {
				out[i].effect = e
			}
			continue
		}
		s := seen{effect: e, at: b.Now, read: true}
		if k := looks[id]; k != nil {
			s.at, s.lookID, s.read = k.At, k.ID, reads(*k)
		}
		at[id] = len(out)
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y seen) int { return compareIdentity(x.effect.Identity(), y.effect.Identity()) })
	return out
}

// reads reports whether a look shows the object as it is at the provider. A feed and
// a file tell what was so when they were written, and a search index lags.
func reads(l recon.Look) bool {
	switch l.Method {
	case recon.ByID, recon.ByReference, recon.ByList:
		return true
	case recon.ByKey:
		return l.Window.IsZero()
	}
	return false
}

func compareIdentity(a, b recon.EffectIdentity) int {
	return cmp.Or(strings.Compare(a.System, b.System), strings.Compare(a.Account, b.Account),
		strings.Compare(a.Mode, b.Mode), strings.Compare(a.ID, b.ID))
}

// observe puts one observation on the shelf.
func (s *shelf) observe(have map[recon.EffectIdentity]held, o seen, now time.Time) {
	id := o.effect.Identity()
	at := stored(o.at)
	old, known := have[id]
	if !known {
		e := normal(o.effect)
		e.Owner, e.NeedsRead = "", false
		row := rowOf(e)
		row.SeenAt, row.LookID = &at, o.lookID
		s.rows[id], s.fresh[id] = &row, true
		return
	}
	m := merge(old, o)
	if m.write {
		row := rowOf(m.effect)
		if m.replace {
			row.SeenAt, row.LookID = &at, o.lookID
		}
		s.rows[id] = &row
	}
	if m.before != nil {
		s.changes = append(s.changes, changeRow{
			System: id.System, Account: id.Account, Mode: id.Mode, ID: id.ID,
			ChangeID: changeID(id, m.before, m.after), Before: m.before, After: m.after, LookID: o.lookID,
		})
	}
}

// changeID names a change by what it says.
func changeID(id recon.EffectIdentity, before, after map[string]any) string {
	b, err := json.Marshal([]any{id, before, after})
	if err != nil {
		// Metadata that is not JSON is refused by the table with a better error.
		return uuid.NewString()
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// keepRaw keeps the provider's bytes of those effects that are written anew.
func (s *shelf) keepRaw(raw []Raw) error {
	for _, r := range raw {
		row := s.rows[r.Effect]
		if row == nil || row.SeenAt == nil || row.BlobID != "" {
			continue
		}
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		salt := make([]byte, 16)
		rand.Read(salt)
		row.BlobID = id.String()
		s.blobs = append(s.blobs, blobRow{id: row.BlobID, salt: salt, bytes: r.Bytes, about: aboutEffect(r.Effect)})
	}
	return nil
}

// aboutEffect names an effect in one text.
func aboutEffect(id recon.EffectIdentity) string {
	return strings.Join([]string{id.System, id.Account, id.Mode, id.ID}, " ")
}

// link gives an effect to an operation. The caller has made sure that nobody else
// owns it and that it is stored or about to be.
func (s *shelf) link(have map[recon.EffectIdentity]held, m recon.Match, looks map[recon.EffectIdentity]*recon.Look) {
	id := m.Effect
	row := s.rows[id]
	old := have[id]
	if old.effect.Owner == string(m.Operation) && old.role == m.Role {
		return
	}
	if row == nil {
		r := rowOf(old.effect)
		row = &r
		s.rows[id] = row
	}
	row.Owner = string(m.Operation)
	r := matchRow{
		System: id.System, Account: id.Account, Mode: id.Mode, EffectID: id.ID, Operation: string(m.Operation),
		Basis: string(m.Basis), Certainty: string(m.Certainty), Role: string(m.Role),
	}
	if k := looks[id]; k != nil {
		r.LookID = k.ID
	}
	s.matches = append(s.matches, r)
}

//go:embed sql/save_effects.sql
var saveEffectsSQL string

// saveEffects writes the shelf in one statement. An effect or a link that somebody
// else stored since we looked makes it fail with errRaced, and the batch starts anew.
func (l *Ledger) saveEffects(with *pgx.Batch, s shelf, now time.Time) error {
	if len(s.rows) == 0 && len(s.changes) == 0 && len(s.matches) == 0 {
		return nil
	}
	fresh, changed := make([]*effectRow, 0, len(s.fresh)), make([]*effectRow, 0, len(s.rows)-len(s.fresh))
	for id, r := range s.rows {
		if s.fresh[id] {
			fresh = append(fresh, r)
		} else {
			changed = append(changed, r)
		}
	}
	byIdentity := func(a, b *effectRow) int {
		return cmp.Or(strings.Compare(a.System, b.System), strings.Compare(a.Account, b.Account), strings.Compare(a.Mode, b.Mode), strings.Compare(a.ID, b.ID))
	}
	slices.SortFunc(fresh, byIdentity)
	slices.SortFunc(changed, byIdentity)
	args := []any{l.tenant, stored(now)}
	for _, v := range []any{fresh, changed, emptyList(s.changes), emptyList(s.matches)} {
		b, err := encode(v)
		if err != nil {
			return err
		}
		args = append(args, b)
	}
	args = append(args, blobColumns(s.blobs)...)
	with.Queue(saveEffectsSQL, args...).QueryRow(func(row pgx.Row) error {
		var inserted, linked int
		if err := row.Scan(&inserted, &linked); err != nil {
			return err
		}
		if inserted != len(fresh) || linked != len(s.matches) {
			return errRaced
		}
		return nil
	})
	return nil
}

func blobColumns(blobs []blobRow) []any {
	ids, about := make([]string, len(blobs)), make([]string, len(blobs))
	salts, bytes := make([][]byte, len(blobs)), make([][]byte, len(blobs))
	for i, r := range blobs {
		ids[i], salts[i], bytes[i], about[i] = r.id, r.salt, r.bytes, r.about
	}
	return []any{ids, salts, bytes, about}
}

// emptyList keeps a nil slice from becoming JSON's null.
func emptyList[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
