package files

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Source is a provider of which we have export files only. Nobody can be asked: what is
// known is what was imported, and that concludes operations as every stored effect does.
// A question is answered blind, never absent.
type Source struct {
	name  recon.SourceName
	sheet recon.Sheet
}

var _ sources.Source = (*Source)(nil)

// New makes the source of that name. The error lists every fault of the settings.
func New(name recon.SourceName, s Settings) (*Source, error) {
	f, err := FormatOf(name, s)
	if err != nil {
		return nil, err
	}
	look := recon.Ability{Method: recon.ByFile, Consistency: recon.Eventual, NeedsMark: []recon.Mark{recon.MarkKey, recon.MarkReference}}
	if s.Lag > 0 {
		look.Consistency, look.Lag = recon.Strong, s.Lag
	}
	return &Source{name: name, sheet: recon.Sheet{
		System: f.System, Kinds: s.kinds(), Accounts: f.Accounts, Marker: f.Marker, Abilities: []recon.Ability{look},
		Exponents: s.exponents(),
	}}, nil
}

// exponents are those by which the format's amounts are read.
func (s Settings) exponents() map[string]int {
	if s.Format == StripeBalance || s.Format == StripePayments {
		return stripeExponents
	}
	return nil
}

// Name is the name that the configuration gives.
func (s *Source) Name() recon.SourceName { return s.name }

// Sheet says what the source can do: an import finds, and its silence proves nothing
// unless the settings say how late an export can be (lag).
func (s *Source) Sheet() recon.Sheet { return s.sheet }

// Ask answers that nobody can be asked, once for each kind and place of the batch.
func (s *Source) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	var a sources.Answer
	if err := ctx.Err(); err != nil {
		return a, err
	}
	type place struct{ kind, account, mode string }
	seen := map[place]bool{}
	for _, q := range batch {
		p := place{q.Kind, q.Account, q.Mode}
		if seen[p] {
			continue
		}
		seen[p] = true
		id, err := uuid.NewV7()
		if err != nil {
			return sources.Answer{}, fmt.Errorf("name a look: %w", err)
		}
		a.Looks = append(a.Looks, recon.Look{
			ID: id.String(), Source: s.name, Method: recon.ByFile, Outcome: recon.Blind, Kind: q.Kind,
			Account: q.Account, Mode: q.Mode, At: now(), Fault: string(sources.Unsupported),
			Detail: "only export files tell of it; bring the next one in with `reconciler import --source " + string(s.name) + "`",
		})
	}
	return a, nil
}

// Probe succeeds: there is nobody who could be away.
func (s *Source) Probe(context.Context) error { return nil }
