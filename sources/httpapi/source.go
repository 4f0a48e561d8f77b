package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	maxFaults      = 3
	requestTimeout = 30 * time.Second
	defaultSize    = 100
	inFlightOf     = 2 * time.Minute
)

// Options are what is not in the configuration. The zero value is right for a daemon.
type Options struct {
	// Transport carries the requests; nil means Go's own. It sees GETs, and the POST of
	// client credentials to their token endpoint.
	Transport http.RoundTripper
	// OnRequest is told of every request: the look-up as "GET refund by_id", and the status,
	// or the kind of fault where there was no reply.
	OnRequest func(endpoint, code string)
	Timeout   time.Duration // of one request; 0 means 30 s
	PageSize  int           // at most what the configuration says; 0 means that
}

// Source observes effects at an API that the configuration describes. See the package
// comment.
type Source struct {
	name      recon.SourceName
	settings  Settings
	marker    string
	places    []*place
	kinds     map[string]*kind
	sheet     recon.Sheet
	client    *http.Client
	timeout   time.Duration
	limiter   *rate.Limiter
	onRequest func(endpoint, code string)
	memory    sources.Memory
}

var (
	_ sources.Source = (*Source)(nil)
	_ sources.Lister = (*Source)(nil)
)

// place is one account in one mode.
type place struct {
	recon.Account
	credentials credentials
}

// New makes a source from settings whose secrets were read. The error lists every fault
// of the settings.
func New(name recon.SourceName, s Settings, o Options) (*Source, error) {
	if faults := s.Validate(); len(faults) > 0 {
		return nil, faultsError(name, faults)
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport()
	}
	s = s.Filled(string(name)).(Settings)
	src := &Source{
		name: name, settings: s, marker: s.Marker, kinds: map[string]*kind{}, timeout: requestTimeout, onRequest: o.OnRequest,
		client:  &http.Client{Transport: wire{transport}, CheckRedirect: noRedirect},
		limiter: rate.NewLimiter(s.perSecond(), max(1, s.PerSecond)),
	}
	if o.Timeout > 0 {
		src.timeout = o.Timeout
	}
	if src.onRequest == nil {
		src.onRequest = func(string, string) {}
	}
	tokens := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	made := map[AuthSettings]credentials{}
	for _, a := range s.all() {
		if made[a.Auth] == nil {
			made[a.Auth] = a.Auth.credentials(tokens)
		}
		src.places = append(src.places, &place{recon.Account{Account: a.Account, Mode: a.Mode}, made[a.Auth]})
	}
	for _, e := range s.Effects {
		k, _ := compile(e, s.Marker) // Validate has found no fault
		for _, look := range k.endpoints() {
			look.success, _ = s.Success.compile() // Validate has found no fault
		}
		if o.PageSize > 0 && k.list != nil && k.list.paging != nil {
			k.resize(o.PageSize)
		}
		src.kinds[e.Kind] = k
	}
	src.sheet = src.writeSheet()
	return src, nil
}

func faultsError(name recon.SourceName, faults []recon.Fault) error {
	list := make([]error, len(faults))
	for i, f := range faults {
		list[i] = f
	}
	return fmt.Errorf("source %s: %w", name, errors.Join(list...))
}

func (s Settings) perSecond() rate.Limit {
	if s.PerMinute > 0 {
		return rate.Limit(float64(s.PerMinute) / 60)
	}
	return rate.Limit(s.PerSecond)
}

// resize asks lists for smaller pages.
func (k *kind) resize(size int) {
	for _, e := range k.endpoints() {
		if e.paging != nil {
			e.paging.size = min(size, e.paging.size)
		}
	}
}

// Name is the name that the configuration gives.
func (s *Source) Name() recon.SourceName { return s.name }

// Sheet says what the source can do.
func (s *Source) Sheet() recon.Sheet { return s.sheet }

func (s *Source) writeSheet() recon.Sheet {
	set := s.settings
	sheet := recon.Sheet{
		System: set.System, Marker: s.marker, Kinds: slices.Sorted(maps.Keys(s.kinds)),
		Abilities:   sources.Weakest(abilities(set.Effects)),
		KeyLifetime: set.Keys.Lifetime, RepeatAnswer: set.Keys.RepeatAnswers, KeyHoldsOne: set.Keys.HoldsOne,
		InFlightMax: set.InFlight, PageSize: defaultSize, PerSecond: float64(set.perSecond()),
	}
	for _, p := range s.places {
		sheet.Accounts = append(sheet.Accounts, p.Account)
	}
	for _, k := range s.kinds {
		if k.list != nil && k.list.paging != nil {
			sheet.PageSize = min(sheet.PageSize, k.list.paging.size)
		}
		for currency, digits := range k.words.Exponents {
			if sheet.Exponents == nil {
				sheet.Exponents = map[string]int{}
			}
			sheet.Exponents[currency] = digits
		}
	}
	return sheet
}

// abilities gives what single look-ups can do.
func abilities(effects []EffectSettings) (list []recon.Ability) {
	for _, e := range effects {
		for _, l := range e.lookups() {
			list = append(list, recon.Ability{Method: l.method, Consistency: recon.Consistency(l.Consistency), Lag: l.Lag, History: l.History, Kinds: []string{e.Kind}})
		}
	}
	return list
}

// Probe asks for the newest objects of a list, or by a name that nobody has: then any
// reply that is JSON of the API shows that it answers. It returns nil or an *sources.Error.
func (s *Source) Probe(ctx context.Context) error {
	k := s.kinds[s.sheet.Kinds[0]]
	e, v := k.endpoints()[0], s.vars(s.places[0], sources.Question{})
	if k.list != nil {
		e = k.list
	} else {
		for _, name := range []string{"id", "reference", "key", "parent"} {
			v[name] = "nobody-has-this-name"
		}
	}
	r, fault, err := s.get(ctx, request{s.places[0], k, e, v, e.begin(), nil})
	switch {
	case err != nil:
		return s.fault("probe", sources.Timeout, err)
	case fault == nil:
		if _, err := e.objects(r); err != nil {
			return s.fault("probe", sources.Malformed, err)
		}
		return nil
	case errors.Is(fault, errNotThere), k.list == nil && fault.Kind == sources.OwnBug && r.value != nil:
		return nil
	}
	return fault
}

func (s *Source) vars(p *place, q sources.Question) vars {
	return vars{
		"account": p.Account.Account, "mode": p.Mode, "marker": s.marker,
		"id": q.EffectID, "reference": string(q.Operation), "key": q.Key, "parent": q.Parent,
	}
}

func (s *Source) fault(op string, kind sources.Kind, cause error) *sources.Error {
	return &sources.Error{Source: s.name, Op: op, Kind: kind, Err: cause}
}
