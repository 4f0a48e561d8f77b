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
// sure refuses the file: what it tells of would be missing from the answer.
func (in *compareInput) readRows(ctx context.Context, o CompareOptions, take func(recon.Effect, int)) error {
	name := fileName(o.EffectsName, "effects")
	rows := files.Open(*o.EffectsFormat, o.Effects, name)
	var row files.Row
	for n := 1; rows.Next(&row); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch row.Outcome {
		case files.Read:
			row.Effect.Metadata = nil // takes no part in a comparison
			take(row.Effect, row.Line)
		case files.SetAside:
			in.setAside++
		case files.Refused:
			return fmt.Errorf("%s line %d: %s; correct the line, or take it out and compare it by hand", name, row.Line, row.Reason)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, n := range rows.Notes() {
		text := name + ": " + n.Text
		if n.Line > 0 {
			text = fmt.Sprintf("%s line %d: %s", name, n.Line, n.Text)
		}
		in.notes = append(in.notes, text)
	}
	if e := rows.Encoding(); e != "" && e != "utf-8" {
		in.notes = append(in.notes, fmt.Sprintf("%s: read as %s", name, e))
	}
	return nil
}

// belong completes effects of a file whose format is of no configured source: they are of
// the only source that the operations name, and where rows do not say it, of its only
// account.
func (in *compareInput) belong(o CompareOptions, effects []*recon.Effect) error {
	f := o.EffectsFormat
	if f == nil || f.Source != "" {
		return nil
	}
	source, err := in.onlySource(o)
	if err != nil {
		return err
	}
	only, single := in.onlyPlace(source)
	for _, e := range effects {
		e.Source, e.System = source, string(source)
		if single && e.Account == "default" {
			e.Account = only.Account
			if e.Mode == "live" {
				e.Mode = only.Mode
			}
		}
	}
	return nil
}

// onlySource gives the source that all operations name.
func (in *compareInput) onlySource(o CompareOptions) (recon.SourceName, error) {
	named := map[recon.SourceName]bool{}
	for _, op := range in.operations {
		named[op.Source] = true
	}
	switch names := sortedNames(named); len(names) {
	case 0:
		return "", nil
	case 1:
		return recon.SourceName(names[0]), nil
	default:
		return "", fmt.Errorf("%s is of one source, and the operations name several (%s); say which with --effects-source",
			fileName(o.EffectsName, "effects"), strings.Join(names, ", "))
	}
}

// onlyPlace gives the account and mode that all operations of a source name.
func (in *compareInput) onlyPlace(source recon.SourceName) (recon.Account, bool) {
	var only recon.Account
	for _, op := range in.operations {
		if op.Source != source {
			continue
		}
		at := recon.Account{Account: op.Account, Mode: op.Mode}
		if only != (recon.Account{}) && only != at {
			return recon.Account{}, false
		}
		only = at
	}
	return only, only != (recon.Account{})
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
