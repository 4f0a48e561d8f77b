package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ignored is a status word's meaning that sets its rows aside.
const ignored = "ignored"

// columnMap reads a CSV whose columns the settings name.
type columnMap struct {
	format   *Format
	settings Settings
	totals   int              // column of the words that tell sums; -1: there are none
	sums     map[string]int64 // by currency, of the rows since the last total
	unread   bool             // an amount could not be read, so sums say nothing
	twins    map[[16]byte]int // of rows without an id: how often each was seen
	note     noter
}

// The places of the mapped columns; totals stand behind them.
const (
	mapID = iota
	mapCreated
	mapTime
	mapZone
	mapUpdated
	mapAmount
	mapCurrency
	mapStatus
	mapKind
	mapAccount
	mapMode
	mapParent
	mapTarget
	mapReference
	mapNatural
	mapKey
	mapFee
	mapNet
	mapTotals
)

type mapped struct{ key, name string }

// list gives the columns in the order of their places.
func (c Columns) list() []mapped {
	return []mapped{
		{"id", c.ID}, {"created_at", c.CreatedAt}, {"time", c.Time}, {"zone", c.Zone}, {"updated_at", c.UpdatedAt},
		{"amount", c.Amount}, {"currency", c.Currency}, {"status", c.Status}, {"kind", c.Kind}, {"account", c.Account},
		{"mode", c.Mode}, {"parent", c.Parent}, {"target", c.Target}, {"reference", c.Reference},
		{"natural_reference", c.NaturalReference}, {"key", c.Key}, {"fee", c.Fee}, {"net", c.Net},
	}
}

func newColumnMap(f *Format, s Settings) *columnMap {
	return &columnMap{format: f, settings: s, totals: -1, sums: map[string]int64{}, twins: map[[16]byte]int{}}
}

// columns are all that the settings name, each required: a map that names a column
// that is not there is wrong, or the file is.
func (m *columnMap) columns() []column {
	var list []column
	for _, c := range m.settings.Columns.list() {
		if c.name == "" {
			list = append(list, column{})
			continue
		}
		list = append(list, column{names: []string{c.name}, required: true})
	}
	if t := m.settings.Totals.Column; t != "" {
		list = append(list, column{names: []string{t}, required: true})
	}
	return list
}

func (m *columnMap) begin(h header, note noter) error {
	m.note = note
	if m.settings.Totals.Begins == "" {
		return nil
	}
	if m.totals = mapTotals; m.settings.Totals.Column == "" {
		m.totals = slices.IndexFunc(h.at, func(at int) bool { return at >= 0 })
	}
	return nil
}

// alone is false where a row is known by how often it stood above, or is part of a sum.
func (m *columnMap) alone() bool { return m.settings.Columns.ID != "" && m.totals < 0 }
func (m *columnMap) end() error  { return nil }

func (m *columnMap) read(rec *record, row *Row) error {
	if m.totals >= 0 && strings.HasPrefix(rec.get(m.totals), m.settings.Totals.Begins) {
		return m.total(rec, row)
	}
	e := &row.Effect
	e.Source, e.System = m.format.Source, m.format.System
	signed, unread := m.money(rec, e) // of every row: totals count them all
	if unread != nil {
		m.unread = true
		if isFault(unread) {
			return unread
		}
	}
	ours, err := m.words(rec, row)
	if err != nil || !ours {
		return err
	}
	if unread != nil {
		return unread
	}
	if m.otherSign(signed) {
		row.setAside("the sign of its amount is not that of an effect (`sign: %s`)", m.settings.Sign)
		return nil
	}
	if signed == 0 && m.settings.Columns.Amount != "" {
		return refuse("%s: the amount is 0; an effect has more", m.settings.Columns.Amount)
	}
	if err := m.times(rec, e); err != nil {
		return err
	}
	if err := m.names(rec, e); err != nil {
		return err
	}
	return m.identify(rec, e)
}

// total holds a row with a sum against the rows above it: where they differ the file was
// cut, or is misread.
func (m *columnMap) total(rec *record, row *Row) error {
	row.setAside("it holds a total")
	if m.settings.Columns.Amount == "" || rec.get(mapAmount) == "" {
		return nil
	}
	in, err := m.currency(rec, true)
	if err != nil {
		return err
	}
	v, err := m.amount(rec, mapAmount, m.settings.Columns.Amount, in)
	if err != nil {
		return err
	}
	currency := in.code
	sum := m.sums[currency]
	switch {
	case m.unread:
		m.note(row.Line, "its total cannot be checked, because an amount above it could not be read")
	case sum != v:
		return faultf(row.Line, "the total is %s and the rows above it make %s; the file was cut, or its numbers are read wrongly",
			recon.Money{Minor: v, Currency: currency}.Text(nil), recon.Money{Minor: sum, Currency: currency}.Text(nil))
	}
	delete(m.sums, currency)
	return nil
}

func (m *columnMap) otherSign(v int64) bool {
	return m.settings.Sign == "negative" && v > 0 || m.settings.Sign == "positive" && v < 0
}

// currency gives the currency of a row. A total may leave it out where all rows above
// have one.
func (m *columnMap) currency(rec *record, total bool) (money, error) {
	cell := rec.get(mapCurrency)
	if m.settings.Columns.Currency == "" {
		cell = m.settings.Currency
	}
	if cell == "" && total && len(m.sums) == 1 {
		for c := range m.sums {
			cell = c
		}
	}
	in, err := m.format.money(cell)
	if err != nil {
		return money{}, refuse("%s: %v", orElse(m.settings.Columns.Currency, "currency"), err)
	}
	return in, nil
}

// money reads the amounts of a row and gives the first with its sign.
func (m *columnMap) money(rec *record, e *recon.Effect) (int64, error) {
	if m.settings.Columns.Amount == "" {
		return 0, nil
	}
	in, err := m.currency(rec, false)
	if err != nil {
		return 0, err
	}
	v, err := m.amount(rec, mapAmount, m.settings.Columns.Amount, in)
	if err != nil {
		return 0, err
	}
	if m.totals >= 0 {
		m.sums[in.code] += v
	}
	if v != 0 {
		e.Money = recon.Money{Minor: max(v, -v), Currency: in.code}
	}
	for _, side := range []struct {
		column int
		name   string
		to     **int64
	}{{mapFee, m.settings.Columns.Fee, &e.Fee}, {mapNet, m.settings.Columns.Net, &e.Net}} {
		if side.name == "" || rec.get(side.column) == "" {
			continue
		}
		v, err := m.amount(rec, side.column, side.name, in)
		if errors.Is(err, errNoValue) {
			continue
		}
		if err != nil {
			return 0, err
		}
		*side.to = &v
	}
	return v, nil
}

func (m *columnMap) amount(rec *record, column int, name string, in money) (int64, error) {
	v, err := m.format.amount(rec.get(column), in)
	return v, named(name, err)
}

// words reads what a row is and whose. It is false for a row that is set aside.
func (m *columnMap) words(rec *record, row *Row) (bool, error) {
	e, c := &row.Effect, &m.settings.Columns
	e.Kind = m.settings.Kind
	if c.Kind != "" {
		kind, known := lookUp(m.settings.Kinds, rec.get(mapKind))
		if !known {
			row.setAside("%s %q is no kind of effect here", c.Kind, shown(rec.get(mapKind)))
			return false, nil
		}
		e.Kind = kind
	}
	mode, known := modeOf(rec.get(mapMode), m.settings.Modes)
	if !known {
		return false, refuse("%s: %q is no mode that is known here; add it to `modes`", c.Mode, shown(rec.get(mapMode)))
	}
	account, err := text1(c.Account, rec.get(mapAccount))
	if err != nil {
		return false, err
	}
	var one bool
	if e.Account, e.Mode, one = m.format.place(account, mode); !one {
		return false, refuse("the source has several accounts and the row does not say which it is of")
	}
	if !m.format.has(e.Account, e.Mode) {
		row.setAside("account %s in %s mode is none of the source's", shown(e.Account), e.Mode)
		return false, nil
	}
	e.Status = recon.Completed
	if c.Status == "" {
		return true, nil
	}
	status, known := lookUp(m.settings.Statuses, rec.get(mapStatus))
	switch {
	case !known:
		return false, refuse("%s: %q is no status that is known here; add it to `statuses`", c.Status, shown(rec.get(mapStatus)))
	case status == ignored:
		row.setAside("%s %q is ignored by the settings", c.Status, shown(rec.get(mapStatus)))
		return false, nil
	}
	e.Status = recon.EffectStatus(status)
	return true, nil
}

func (m *columnMap) times(rec *record, e *recon.Effect) (err error) {
	c := &m.settings.Columns
	cell := rec.get(mapCreated)
	if c.Time != "" {
		cell += " " + rec.get(mapTime)
	}
	if e.CreatedAt, err = m.format.dates.instant(cell, rec.get(mapZone)); err != nil {
		return named(c.CreatedAt, err)
	}
	if c.UpdatedAt == "" || rec.get(mapUpdated) == "" {
		return nil
	}
	e.UpdatedAt, err = m.format.dates.instant(rec.get(mapUpdated), rec.get(mapZone))
	return named(c.UpdatedAt, err)
}

func (m *columnMap) names(rec *record, e *recon.Effect) (err error) {
	c := &m.settings.Columns
	for _, f := range []struct {
		column int
		name   string
		to     *string
	}{
		{mapID, c.ID, &e.ID}, {mapParent, c.Parent, &e.Parent}, {mapTarget, c.Target, &e.Target},
		{mapReference, c.Reference, &e.Reference}, {mapNatural, c.NaturalReference, &e.NaturalReference}, {mapKey, c.Key, &e.Key},
	} {
		if f.name == "" {
			continue
		}
		if *f.to, err = text1(f.name, rec.get(f.column)); err != nil {
			return err
		}
	}
	if c.ID != "" && e.ID == "" {
		return refuse("%s is empty, so nobody knows which effect it is", c.ID)
	}
	return nil
}

// identify names a row that has no id of its own by all that it says. Rows that say the
// same are told apart by their number: two equal payments of one day stay two, and a
// later export that overlaps gives them the same names again.
func (m *columnMap) identify(rec *record, e *recon.Effect) error {
	if m.settings.Columns.ID != "" {
		return nil
	}
	h := sha256.New()
	for i := range mapTotals {
		if i != mapStatus && i != mapUpdated { // they change while the row stays the same
			fmt.Fprintf(h, "%q\n", rec.get(i))
		}
	}
	var sum [16]byte
	copy(sum[:], h.Sum(nil))
	m.twins[sum]++
	e.ID = "row_" + hex.EncodeToString(sum[:])
	if n := m.twins[sum]; n > 1 {
		e.ID += fmt.Sprintf("_%d", n)
	}
	return nil
}
