package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// readRows reads effects from a file that is not JSON Lines. A row that cannot be read for
// sure refuses the file: what it tells of would be missing from the answer. It counts what
// is set aside and tells what a person should know. Rows that are not wanted may be left out.
func (in *compareInput) readRows(ctx context.Context, o CompareOptions, take func(line int, e *recon.Effect), wanted files.Wanted) error {
	name := fileName(o.EffectsName, "effects")
	rows := files.Open(*o.EffectsFormat, o.Effects, name)
	rows.Only(wanted)
	var row files.Row
	for n := 1; rows.Next(&row); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch row.Outcome {
		case files.Read:
			row.Effect.Metadata = nil // takes no part in a comparison
			take(row.Line, &row.Effect)
		case files.SetAside:
			in.setAside++
		case files.Refused:
			return fmt.Errorf("%s line %d: %s; correct the line, or take it out and compare it by hand", name, row.Line, row.Reason)
		}
	}
	in.notes = notesOf(name, rows.Notes(), rows.Encoding())
	return rows.Err()
}

// notesOf gives what a person should know of a file.
func notesOf(name string, notes []files.Note, encoding string) []string {
	var texts []string
	for _, n := range notes {
		text := name + ": " + n.Text
		if n.Line > 0 {
			text = fmt.Sprintf("%s line %d: %s", name, n.Line, n.Text)
		}
		texts = append(texts, text)
	}
	if encoding != "" && encoding != "utf-8" {
		texts = append(texts, fmt.Sprintf("%s: read as %s", name, encoding))
	}
	return texts
}

// placesOf gives where operations are said to be.
func placesOf(operations []*recon.Operation) map[briefPlace]bool {
	places := map[briefPlace]bool{}
	for _, op := range operations {
		places[briefPlace{brief{op.Source, op.Action}, op.Account, op.Mode}] = true
	}
	return places
}

// tableOwner completes effects of a file whose format is of no configured source: they are
// of the only source that the operations name, and where rows do not say it, of its only
// account.
type tableOwner struct {
	source recon.SourceName // empty: rows say it themselves
	only   recon.Account    // zero: operations name several
}

func tableOwnerOf(o CompareOptions, places map[briefPlace]bool) (tableOwner, error) {
	if o.EffectsFormat == nil || o.EffectsFormat.Source != "" {
		return tableOwner{}, nil
	}
	named, at := map[recon.SourceName]bool{}, map[recon.Account]bool{}
	for p := range places {
		named[p.brief.source] = true
		at[recon.Account{Account: p.account, Mode: p.mode}] = true
	}
	names := sortedNames(named)
	switch len(names) {
	case 0:
		return tableOwner{}, nil
	case 1:
	default:
		return tableOwner{}, fmt.Errorf("%s is of one source, and the operations name several (%s); say which with --effects-source",
			fileName(o.EffectsName, "effects"), strings.Join(names, ", "))
	}
	b := tableOwner{source: recon.SourceName(names[0])}
	if len(at) == 1 {
		for only := range at {
			b.only = only
		}
	}
	return b, nil
}

func (b tableOwner) complete(e *recon.Effect) {
	if b.source == "" {
		return
	}
	e.Source, e.System = b.source, string(b.source)
	if b.only.Account != "" && e.Account == "default" {
		e.Account = b.only.Account
		if e.Mode == "live" {
			e.Mode = b.only.Mode
		}
	}
}

// makes gives the kinds that actions name by their first word, in a file whose provider has
// those words. It is false where some action does not say it.
func makes(f *files.Format, places map[briefPlace]bool) (map[string]bool, bool) {
	made := map[string]bool{}
	for p := range places {
		noun, _, _ := strings.Cut(p.brief.action, ".")
		if !namesKind(f, noun) {
			return nil, false
		}
		made[noun] = true
	}
	return made, true
}

// leaveOut sets aside the kinds of effects that no action makes: a balance report lists
// everything that moved money, whoever asked for it. It does so only where every action is
// known to make something.
func (in *compareInput) leaveOut(o CompareOptions, effects *records[recon.Effect]) {
	if o.EffectsFormat == nil || len(o.EffectsFormat.Kinds) > 0 {
		return
	}
	kinds := newKinds(compareInput{operations: in.operations, effects: effects.all}, o.EffectsFormat)
	made := map[string]bool{}
	for _, op := range in.operations {
		kind := kinds.of(brief{op.Source, op.Action})
		if kind == "" {
			return
		}
		made[kind] = true
	}
	kept := 0
	for i, e := range effects.all {
		if len(made) == 0 || made[e.Kind] {
			effects.all[kept], effects.lines[kept] = e, effects.lines[i]
			kept++
		}
	}
	in.setAside += len(effects.all) - kept
	effects.all, effects.lines = effects.all[:kept], effects.lines[:kept]
}

// unshown says why effects of a kind cannot be in the file, empty where they can be.
func unshown(f *files.Format, kind string) string {
	if f != nil && f.Name == files.StripePayments && kind != "charge" && kind != "payment_intent" {
		return fmt.Sprintf("the payments list shows no %s: it has totals per payment only", recon.Noun(kind))
	}
	return ""
}

// stripeKinds are what Stripe calls what an action of that name makes.
var stripeKinds = []string{
	"charge", "checkout_session", "credit_note", "customer", "dispute", "invoice", "payment_intent", "payout", "refund",
	"subscription", "transfer",
}

// namesKind reports whether an action's first word is a kind of the file's provider, which
// then says more than which kinds happen to stand in the file.
func namesKind(f *files.Format, noun string) bool {
	return f != nil && (f.Name == files.StripeBalance || f.Name == files.StripePayments) && slices.Contains(stripeKinds, noun)
}

func sortedNames[K ~string](set map[K]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}
