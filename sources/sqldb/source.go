package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// maxCalls bounds the requests of one Ask. What it leaves unasked is blind.
	maxCalls = 2000
	// maxFaults is how many requests in a row may bring no answer before the rest of the
	// batch is given up.
	maxFaults = 3
	// maxValues is how many values one request looks for.
	maxValues = 500
	// maxRows is how many rows one request may bring. More is a fault, never a part.
	maxRows = 10_000
	// maxBytes bounds what they hold together.
	maxBytes = 16 << 20
)

// Options are what is not in the configuration. The zero value is right for a daemon.
type Options struct {
	// OnRequest is told of every request: the look-up as "SELECT refund by_id", and ok or the
	// kind of fault.
	OnRequest func(endpoint, code string)
	Timeout   time.Duration // of one request; 0 means what the settings say
	PageSize  int           // 0 means what the settings say
}

// Source observes effects in tables. See the package comment.
type Source struct {
	name      recon.SourceName
	settings  Settings
	timeout   time.Duration
	sheet     recon.Sheet
	kinds     map[string]*kind
	limiter   *rate.Limiter
	onRequest func(endpoint, code string)
	memory    sources.Memory
	seen      catalogue
}

// kind is one kind of effect, ready to be asked for and read.
type kind struct {
	EffectSettings
	words sources.Fields
	roles []role
}

var (
	_ sources.Source  = (*Source)(nil)
	_ sources.Lister  = (*Source)(nil)
	_ sources.Witness = (*Source)(nil)
	_ sources.Guarded = (*Source)(nil)
)

// New makes a source from settings whose secrets were read. It connects to nothing. The
// error lists every fault of the settings.
func New(name recon.SourceName, s Settings, o Options) (*Source, error) {
	if faults := s.Validate(); len(faults) > 0 {
		list := make([]error, len(faults))
		for i, f := range faults {
			list[i] = f
		}
		return nil, fmt.Errorf("source %s: %w", name, errors.Join(list...))
	}
	s = s.Filled(string(name)).(Settings)
	if o.PageSize > 0 {
		s.PageSize = o.PageSize
	}
	src := &Source{
		name: name, settings: s, kinds: map[string]*kind{}, onRequest: o.OnRequest,
		timeout: s.StatementTimeout.Std() + s.LockTimeout.Std() + s.ConnectTimeout.Std(),
		limiter: rate.NewLimiter(rate.Limit(s.PerSecond), max(1, s.PerSecond)),
	}
	if o.Timeout > 0 {
		src.timeout = o.Timeout
	}
	if src.onRequest == nil {
		src.onRequest = func(string, string) {}
	}
	for _, e := range s.Effects {
		src.kinds[e.Kind] = &kind{EffectSettings: e, words: e.words(), roles: e.Columns.roles()}
	}
	src.sheet = src.writeSheet()
	return src, nil
}

// Name is the name that the configuration gives.
func (s *Source) Name() recon.SourceName { return s.name }

// Sheet says what the source can do.
func (s *Source) Sheet() recon.Sheet { return s.sheet }

func (s *Source) writeSheet() recon.Sheet {
	set := s.settings
	sheet := recon.Sheet{
		System: set.System, Marker: set.Marker, Accounts: set.all(),
		KeyLifetime: set.Keys.Lifetime, RepeatAnswer: set.Keys.RepeatAnswers, KeyHoldsOne: set.Keys.HoldsOne,
		OwnWrite: set.OwnWrite, InFlightMax: set.InFlight, PageSize: set.PageSize, PerSecond: float64(set.PerSecond),
	}
	var lookups []recon.Ability
	for _, e := range set.Effects {
		sheet.Kinds = append(sheet.Kinds, e.Kind)
		for _, l := range []struct {
			method recon.Method
			column string
		}{{recon.ByID, e.Columns.ID}, {recon.ByReference, e.Columns.Reference}, {recon.ByKey, e.Columns.Key}, {recon.ByList, e.Columns.CreatedAt}} {
			if l.column != "" {
				lookups = append(lookups, recon.Ability{Method: l.method, Consistency: recon.Consistency(e.Consistency), Lag: e.Lag, History: e.History, Kinds: []string{e.Kind}})
			}
		}
		for currency, digits := range e.Exponents {
			if sheet.Exponents == nil {
				sheet.Exponents = map[string]int{}
			}
			sheet.Exponents[currency] = digits
		}
	}
	slices.Sort(sheet.Kinds)
	sheet.Abilities = sources.Weakest(lookups)
	return sheet
}

// lagOf is the longest time until a row of the kind can be read.
func (k *kind) lagOf() time.Duration {
	if k.Lag > 0 {
		return k.Lag.Std()
	}
	return time.Minute
}

// Probe asks whether the tables of effects are as they are configured and can be read; a
// witness that cannot keeps no source blind. It returns nil or an *sources.Error.
func (s *Source) Probe(ctx context.Context) error {
	return s.probe(ctx, "probe", func(ctx context.Context, a *asking, tx tx) error {
		for _, e := range s.settings.Effects {
			k := s.kinds[e.Kind]
			rel, err := a.table(ctx, tx, k)
			if err == nil {
				err = rel.readable(ctx, tx, k.roles)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// probe makes one request that only looks whether it could be made.
func (s *Source) probe(ctx context.Context, op string, run func(ctx context.Context, a *asking, tx tx) error) error {
	a := s.asking(time.Now)
	defer a.close(ctx)
	_, fault, err := a.do(ctx, request{name: op, run: func(ctx context.Context, tx tx) error { return run(ctx, a, tx) }})
	if err != nil {
		return s.fault(op, sources.Timeout, err)
	}
	if fault != nil {
		return fault
	}
	return nil
}

func (s *Source) fault(op string, kind sources.Kind, cause error) *sources.Error {
	return &sources.Error{Source: s.name, Op: op, Kind: kind, Err: cause}
}
