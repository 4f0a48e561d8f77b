package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// effects puts the effects of the window into their classes that the operations of the
// window did not account for: those whose operation was made outside it, those of groups,
// and those without owner.
//
// What is judged on the way links effects too, so those without owner come first: what
// gets an owner before its turn is met among the owned ones.
func (u *audit) effects(ctx context.Context) error {
	if err := u.shelf(ctx); err != nil {
		return err
	}
	owned, err := u.of.Accounts.AuditOwned(ctx, u.scope())
	if err != nil || owned == u.owned {
		return err // all of them belong to operations of the window
	}
	return u.outside(ctx)
}

// shelf walks over the effects without owner.
func (u *audit) shelf(ctx context.Context) error {
	var after ledger.AuditPlace
	for {
		shelf, err := u.of.Accounts.AuditShelf(ctx, u.scope(), after, u.batchSize())
		if err != nil {
			return err
		}
		if err := u.judgeEffects(ctx, shelf); err != nil {
			return err
		}
		if len(shelf) < u.batchSize() {
			return nil
		}
		after = ledger.PlaceOf(shelf[len(shelf)-1])
	}
}

// outside walks over owned effects, most of which are accounted for.
func (u *audit) outside(ctx context.Context) error {
	var after ledger.AuditPlace
	size := u.chunkSize()
	for {
		piece, err := u.of.Accounts.AuditOutside(ctx, u.scope(), after, size)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(piece.Effects, u.batchSize()) {
			if err := u.judgeEffects(ctx, part); err != nil {
				return err
			}
		}
		if piece.Read < size {
			return nil
		}
		after = piece.Last
	}
}

// judgeEffects classes effects: as the operation or group that they belong to, else by
// whose they are.
func (u *audit) judgeEffects(ctx context.Context, effects []recon.Effect) error {
	effects = slices.DeleteFunc(slices.Clone(effects), func(e recon.Effect) bool { return u.counted[e.Identity()] })
	if len(effects) == 0 {
		return nil
	}
	classes, err := u.linkedClasses(ctx, effects)
	if err != nil {
		return err
	}
	var causes []recon.EffectIdentity
	for _, e := range effects {
		if e.Owner == "" {
			causes = append(causes, origins(e)...)
		}
	}
	known, err := u.of.Accounts.Known(ctx, causes)
	if err != nil {
		return err
	}
	var orphans []recon.Effect
	for _, e := range effects {
		class, linked := classes[e.Identity()]
		if !linked {
			class = rules.UnlinkedClass(e, u.ownership(&e, known), u.graceOf(e.Kind), u.at)
		}
		if linked && e.Owner == "" {
			u.counted[e.Identity()] = true
		}
		if class == rules.ClassOrphan {
			orphans = append(orphans, e)
			continue
		}
		u.result.effect(class)
	}
	return u.orphans(ctx, orphans)
}

// linkedClasses gives the classes of the effects that belong to operations or groups. A
// group's effect is classed as the first of its operations with something to say, in the
// order of their ids.
func (u *audit) linkedClasses(ctx context.Context, effects []recon.Effect) (map[recon.EffectIdentity]rules.Class, error) {
	classes := map[recon.EffectIdentity]rules.Class{}
	ids, err := u.of.Accounts.Named(ctx, effects)
	if err != nil {
		return nil, err
	}
	for _, e := range effects {
		if e.Owner != "" {
			ids = append(ids, recon.OperationID(e.Owner)) // a group's name is no operation's id and finds none
		}
	}
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), u.batchSize()) {
		list, err := u.judgeThese(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range list {
			a := &list[i]
			for _, m := range a.kase.Matches {
				e, there := effectOf(a.kase, m.Effect)
				if !there || !binds(m, a.kase.Operation) {
					continue
				}
				if was, again := classes[m.Effect]; !again || was == rules.ClassMatched {
					classes[m.Effect] = rules.LinkedClass(a.judged, e)
				}
			}
		}
	}
	return classes, nil
}

// orphans tells of effects that no operation explains. Those that a person said are not
// ours stay so.
func (u *audit) orphans(ctx context.Context, effects []recon.Effect) error {
	if err := u.lookalikes(ctx, effects); err != nil {
		return err
	}
	findings := make([]recon.Finding, len(effects))
	for i, e := range effects {
		findings[i] = rules.Orphan(e, u.hints[e.Identity()])
	}
	stored, err := u.of.Accounts.FindingsBy(ctx, prints(findings))
	if err != nil {
		return err
	}
	for i, f := range findings {
		if s := stored[f.Fingerprint()]; s.State == recon.FindingSettled && s.SettledAs == settledIgnore {
			u.result.effect(rules.ClassNotOurs)
			findings[i].Kind = ""
			continue
		}
		u.result.effect(rules.ClassOrphan)
	}
	kept := effects[:0:0]
	for i, f := range findings {
		if f.Kind != "" {
			kept = append(kept, effects[i])
		}
	}
	findings = slices.DeleteFunc(findings, func(f recon.Finding) bool { return f.Kind == "" })
	return u.raise(ctx, findings, nil, kept)
}

// lookalikes finds operations that effects name in another spelling, for people.
func (u *audit) lookalikes(ctx context.Context, effects []recon.Effect) error {
	var spelled []recon.Effect
	for _, e := range effects {
		for _, s := range spellings(e.Reference) {
			spelled = append(spelled, recon.Effect{Reference: s})
		}
	}
	if len(spelled) == 0 {
		return nil
	}
	ids, err := u.of.Accounts.Named(ctx, spelled)
	if err != nil || len(ids) == 0 {
		return err
	}
	cases, err := u.of.Accounts.Cases(ctx, ids)
	if err != nil {
		return err
	}
	for _, c := range pair(cases, effects, nil) {
		for _, m := range c.Matches {
			if m.Basis == recon.OnLookalike {
				u.hints[m.Effect] = append(u.hints[m.Effect], m)
			}
		}
	}
	return nil
}

// spellings are the ways in which a reference may have been meant: people and banks change
// case, add quotes and words before it, and put spaces into it.
func spellings(reference string) []string {
	reference = strings.Trim(strings.TrimSpace(reference), `"'.`)
	if reference == "" {
		return nil
	}
	words := strings.Fields(reference)
	var list []string
	for _, s := range []string{reference, words[len(words)-1], strings.Join(words, "")} {
		for _, s := range []string{s, strings.ToLower(s), strings.ToUpper(s)} {
			list = append(list, s, strings.ReplaceAll(s, "-", "_"))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// settledIgnore is how a person says that an effect is not ours.
const settledIgnore = "ignore"

func prints(findings []recon.Finding) []string {
	list := make([]string, len(findings))
	for i, f := range findings {
		list[i] = f.Fingerprint()
	}
	return list
}

// raise records findings that belong to no single operation, and tells them. What a person
// settled is not told again while what they saw is the same.
func (u *audit) raise(ctx context.Context, findings []recon.Finding, ours []recon.Operation, theirs []recon.Effect) error {
	if len(findings) == 0 {
		return nil
	}
	stored, err := u.of.Accounts.FindingsBy(ctx, prints(findings))
	if err != nil {
		return err
	}
	var fresh []recon.Finding
	for _, f := range findings {
		s, known := stored[f.Fingerprint()]
		same := known && slices.Equal(sortedDifferences(s.Observed), sortedDifferences(f.Observed))
		if same && s.State == recon.FindingSettled {
			continue
		}
		u.result.tell(f, ours, theirs, u.span.counted)
		if !same || s.State == recon.FindingEnded {
			fresh = append(fresh, f)
		}
	}
	return u.recordFindings(ctx, fresh, nil)
}

// recordFindings writes findings and ends of findings that belong to no decision.
func (u *audit) recordFindings(ctx context.Context, fresh []recon.Finding, ends []string) error {
	if len(fresh)+len(ends) == 0 {
		return nil
	}
	if err := u.mayOpen(len(fresh)); err != nil {
		return err
	}
	recorded, err := u.Ledger.Record(ctx, ledger.Batch{
		RunID: u.run.ID, Now: u.at, Findings: fresh, Ends: ends,
	})
	if err != nil {
		return fmt.Errorf("record %d findings: %w", len(fresh)+len(ends), err)
	}
	u.remember(recorded)
	return u.pass.step("findings")
}

// mayOpen bounds the findings of one run like its changes: more of them mean a wrong
// marker or a wrong account, and are no work for people.
func (u *audit) mayOpen(n int) error {
	limit := u.Changes
	if limit == 0 {
		limit = defaultChanges
	}
	if u.opened += n; u.opened > limit {
		return &FindingsLimitError{Source: u.out.Source, Limit: limit}
	}
	return nil
}

// FindingsLimitError says that an audit stopped before it opened more findings than one
// run may.
type FindingsLimitError struct {
	Source recon.SourceName
	Limit  int
}

func (e *FindingsLimitError) Error() string {
	return fmt.Sprintf("%s: this audit would open more than %d findings: a wrong marker or account makes orphans of everything, so look at them "+
		"with --dry-run; if they are right, raise limits.changes_per_run", e.Source, e.Limit)
}
