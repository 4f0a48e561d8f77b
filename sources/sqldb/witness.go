package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Witnesses are the names by which actions name the objects.
func (s *Source) Witnesses() []string {
	names := make([]string, len(s.settings.Witnesses))
	for i, w := range s.settings.Witnesses {
		names[i] = w.Name
	}
	return names
}

// Testify asks for all objects of a batch at once.
func (s *Source) Testify(ctx context.Context, name string, batch []sources.Question, now func() time.Time) ([]recon.Testimony, error) {
	w, err := s.witness(name)
	if err != nil {
		return nil, err
	}
	a := s.asking(now)
	defer a.close(ctx)
	var list []recon.Testimony
	for part := range slices.Chunk(batch, maxValues) {
		told, err := a.testify(ctx, w, part)
		if err != nil {
			return nil, fmt.Errorf("%s: ask the witness %s: %w", s.name, name, err)
		}
		list = append(list, told...)
	}
	return list, nil
}

// ProbeWitness asks whether a witness's table is as it is configured and can be read.
func (s *Source) ProbeWitness(ctx context.Context, name string) error {
	w, err := s.witness(name)
	if err != nil {
		return err
	}
	return s.probe(ctx, "witness "+name, func(ctx context.Context, a *asking, t tx) error {
		rel, err := a.objects(ctx, t, w)
		if err != nil {
			return err
		}
		return rel.readable(ctx, t, w.Columns.roles())
	})
}

func (s *Source) witness(name string) (*WitnessSettings, error) {
	i := slices.IndexFunc(s.settings.Witnesses, func(w WitnessSettings) bool { return w.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no witness %q", s.name, name)
	}
	return &s.settings.Witnesses[i], nil
}

// sought is what of an operation the witness looks for, empty where its object is none of
// the witness's.
func (w *WitnessSettings) sought(q sources.Question) string {
	c := w.Columns
	switch {
	case c.Target != "":
		id, ours := strings.CutPrefix(q.Target, w.Prefix)
		if !ours {
			return ""
		}
		return id
	case c.Reference != "":
		return string(q.Operation)
	case c.Key != "":
		return q.Key
	}
	return q.Parent
}

// by is the column by which an object is found.
func (w *WitnessSettings) by() role {
	for _, r := range w.Columns.roles() {
		if r.finds != "" {
			return r
		}
	}
	return role{} // unreachable: Validate demands one
}

var errNotHeld = errors.New("the column by which objects are found cannot hold what the operation names; is its type, or the prefix, another?")

// maxWord bounds an object's own word for its status.
const maxWord = 60

// object is one business object as it was read.
type object struct {
	row   *record
	money recon.Money
	says  recon.Word
}

// testify asks for the objects of some operations by one request.
func (a *asking) testify(ctx context.Context, w *WitnessSettings, batch []sources.Question) ([]recon.Testimony, error) {
	asked := slices.DeleteFunc(slices.Clone(batch), func(q sources.Question) bool { return w.sought(q) == "" })
	if len(asked) == 0 {
		return nil, nil
	}
	at := a.now().UTC()
	var rel *relation
	var objects map[string][]object
	made, fault, err := a.do(ctx, request{name: "SELECT witness " + w.Name, behind: w.Lag.Std(), run: func(ctx context.Context, t tx) (err error) {
		if rel, err = a.objects(ctx, t, w); err == nil {
			objects, err = w.find(ctx, t, rel, asked)
		}
		return err
	}})
	if err != nil {
		return nil, err
	}
	if made {
		a.Spare++
	}
	list := make([]recon.Testimony, 0, len(asked))
	for _, q := range asked {
		told := recon.Testimony{Operation: q.Operation, Witness: w.Name, Object: w.Prefix + w.sought(q), Says: recon.SaysNothing, Sums: w.Sums, Lag: w.Lag}
		look := a.Look(sources.List{Kind: w.Name}, recon.ByReference, at)
		look.Reference = told.Object
		var found []recon.EffectIdentity
		cause := fault
		if cause == nil {
			found, cause = a.hear(w, rel, objects, &told)
		}
		a.Conclude(look, sources.Trail{}, found, cause)
		list = append(list, told)
	}
	ans, err := a.Answer()
	if err != nil {
		return nil, err
	}
	looks := ans.Looks[len(ans.Looks)-len(list):]
	for i := range list {
		said := list[i].Look.Detail
		if list[i].Look = looks[i]; looks[i].Outcome == recon.Found {
			list[i].Look.Detail = said
		} else if looks[i].Outcome == recon.Absent {
			list[i].Look.Detail = "it knows no such object"
		}
	}
	return list, nil
}

// words say for people what the object shows: "refunded, 42.00 EUR".
func (o object) words(w *WitnessSettings) string {
	var list []string
	if text := o.row.text["status"]; text != "" {
		list = append(list, recon.Shorten(recon.Printable(text), maxWord))
	}
	if o.money.Currency != "" {
		amount := o.money.Text(w.Exponents)
		if o.money.Minor == 0 {
			amount = "0 " + o.money.Currency
		}
		list = append(list, amount)
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// hear takes from what was found what it says of one operation. Several objects under one
// name contradict each other, or one of them is somebody else's: then nothing was heard.
func (a *asking) hear(w *WitnessSettings, rel *relation, objects map[string][]object, told *recon.Testimony) ([]recon.EffectIdentity, *sources.Error) {
	name, holds := rel.canonical(w.by().column, strings.TrimPrefix(told.Object, w.Prefix))
	found := objects[name]
	switch {
	case !holds:
		// It may name the object in another way than the column does: that says nothing of it.
		return nil, a.fault("witness "+w.Name, sources.Malformed, errNotHeld)
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, a.fault("witness "+w.Name, sources.Malformed, errors.New("several rows stand for one object; name a column, or a view, that has one"))
	case found[0].row.err != nil:
		return nil, a.fault("witness "+w.Name, sources.Malformed, found[0].row.err)
	}
	o := found[0]
	told.Says, told.Money, told.Look.Detail = o.says, o.money, o.words(w)
	return []recon.EffectIdentity{{System: a.sheet.System, ID: name}}, nil
}

// objects gives the table of a witness as the catalogue shows it.
func (a *asking) objects(ctx context.Context, t tx, w *WitnessSettings) (*relation, error) {
	rel, err := describe(ctx, t, tableOf(w.Schema, w.Table, w.Columns.roles()))
	if err == nil {
		err = a.note(ctx, t, rel, []role{w.by()})
	}
	return rel, err
}

// find reads the objects, by the value under which each is found.
func (w *WitnessSettings) find(ctx context.Context, t tx, rel *relation, asked []sources.Question) (map[string][]object, error) {
	by, roles := w.by(), w.Columns.roles()
	values := []string{}
	for _, q := range asked {
		if v, ok := rel.canonical(by.column, w.sought(q)); ok {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	var q query
	text := rel.reads(roles) + " WHERE " + q.anyOf(rel, by.column, slices.Compact(values)) + fmt.Sprintf(" LIMIT %d", maxRows+1)
	rows, err := t.Query(ctx, text, q.args...)
	if err != nil {
		return nil, err
	}
	list, err := w.read(rows, rel, roles)
	if err != nil {
		return nil, err
	}
	objects := map[string][]object{}
	for _, o := range list {
		objects[o.row.text[by.name]] = append(objects[o.row.text[by.name]], o)
	}
	return objects, nil
}

// read reads rows. What one of them cannot say is that one's fault alone.
func (w *WitnessSettings) read(rows pgx.Rows, rel *relation, roles []role) ([]object, error) {
	list, err := records(rows, rel, roles)
	if err != nil {
		return nil, err
	}
	words, objects := w.words(), make([]object, 0, len(list))
	for _, row := range list {
		o := object{row: row, says: recon.SaysNothing}
		if w.Columns.Status != "" {
			says, known := w.Says[row.need("status")]
			if !known {
				row.fault("status", errors.New("holds a word that says does not name; add what it means"))
			}
			o.says = recon.Word(says)
		}
		money, err := words.Money(row.text["amount"], row.text["currency"])
		row.fault("amount", err)
		o.money = money
		if w.Columns.Status == "" && money.Currency != "" {
			// Only the amount tells: nothing was done, or for how much.
			o.says = recon.SaysNotDone
			if money.Minor != 0 {
				o.says = recon.SaysDone
			}
		}
		objects = append(objects, o)
	}
	return objects, nil
}
