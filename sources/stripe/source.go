package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	stripego "github.com/stripe/stripe-go/v82"
	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// maxPage is the largest page that Stripe serves.
	maxPage = 100
	// maxCalls bounds the requests of one Ask: 200,000 objects in full pages. What it
	// leaves unasked is blind.
	maxCalls = 2000
	// maxOutages is how many requests in a row may find Stripe out of reach before the
	// rest of the batch is given up.
	maxOutages = 2
	// maxFaults is the same for requests that bring no answer for any reason.
	maxFaults = 5
	// eventHistory is how far back Stripe lists events.
	eventHistory = 30 * 24 * time.Hour
	// requestTimeout is the longest that one request may take.
	requestTimeout = 30 * time.Second
)

// Options are what is not in the configuration. The zero value is right for a daemon.
type Options struct {
	// Transport carries the requests; nil means Go's own. It sees GETs only.
	Transport http.RoundTripper
	// OnRequest is told of every request: the endpoint as "GET /v1/refunds" and the
	// status, or the kind of fault where there was no reply.
	OnRequest func(endpoint, code string)
	// Timeout bounds one request; 0 means 30 s.
	Timeout time.Duration
	// PageSize is asked of lists; 0 means 100.
	PageSize int
}

// Source observes the effects of the configured accounts. See the package comment.
type Source struct {
	name      recon.SourceName
	system    string
	marker    string
	places    []*place
	sheet     recon.Sheet
	pageSize  int
	timeout   time.Duration
	limiter   *rate.Limiter
	secrets   []recon.Secret // of webhooks
	tolerance time.Duration  // between a delivery's signed time and ours, either way
	onRequest func(endpoint, code string)
	memory    *memory
}

var _ sources.Source = (*Source)(nil)

// place is one account in one mode.
type place struct {
	account string
	mode    string
	api     *stripego.Client
	header  *string // Stripe-Account, for a connected account
	writes  bool    // the key opens more than reading
}

// New makes a source from settings whose secrets were read. The error lists every
// fault of the settings.
func New(name recon.SourceName, s Settings, o Options) (*Source, error) {
	var faults []error
	for _, f := range s.Validate() {
		faults = append(faults, f)
	}
	clients := map[recon.Secret]*stripego.Client{}
	src := &Source{
		name: name, system: orElse(s.System, string(name)), marker: orElse(s.Marker, defaultMarker),
		pageSize: maxPage, timeout: requestTimeout, onRequest: o.OnRequest,
		secrets: s.Webhook.Secrets, tolerance: s.Webhook.tolerance(),
	}
	if o.PageSize > 0 {
		src.pageSize = min(o.PageSize, maxPage)
	}
	if o.Timeout > 0 {
		src.timeout = o.Timeout
	}
	if src.onRequest == nil {
		src.onRequest = func(string, string) {}
	}
	backends := newBackends(s.APIURL, o.Transport)
	for i, a := range s.all() {
		key := a.APIKey
		if key.IsZero() && a.APIKeyFile == "" {
			key = s.APIKey
		}
		if key.IsZero() {
			faults = append(faults, fmt.Errorf("account %d has no API key: its file was not read", i+1))
			continue
		}
		if clients[key] == nil {
			clients[key] = stripego.NewClient(key.Reveal(), stripego.WithBackends(backends))
		}
		p := &place{account: a.Account, mode: a.Mode, api: clients[key], writes: mayWrite(key)}
		if a.Connected {
			p.header = stripego.String(a.Account)
		}
		src.places = append(src.places, p)
	}
	if slices.ContainsFunc(s.Webhook.Secrets, recon.Secret.IsZero) || len(s.Webhook.Secrets) < len(s.Webhook.SecretFiles) {
		// With an empty secret anybody could sign.
		faults = append(faults, errors.New("the webhook lacks a secret: its file was not read"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("source %s: %w", name, errors.Join(faults...))
	}
	src.memory = newMemory(address{src.places[0], kindRefund})
	src.sheet = src.writeSheet(s)
	perSecond := src.sheet.PerSecond
	src.limiter = rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))
	return src, nil
}

func newBackends(url string, transport http.RoundTripper) *stripego.Backends {
	if transport == nil {
		transport = newTransport()
	}
	config := &stripego.BackendConfig{
		HTTPClient:        &http.Client{Transport: wire{next: transport}, CheckRedirect: noRedirect},
		MaxNetworkRetries: stripego.Int64(0),
		EnableTelemetry:   stripego.Bool(false),
		// Its messages quote bodies; what we need to know is in the exchange.
		LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
	}
	if url != "" {
		config.URL = stripego.String(url)
	}
	return stripego.NewBackendsWithConfig(config)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Name is the name that the configuration gives.
func (s *Source) Name() recon.SourceName { return s.name }

// Sheet says what the source can do.
func (s *Source) Sheet() recon.Sheet { return s.sheet }

func (s *Source) writeSheet(set Settings) recon.Sheet {
	lag := set.Lag
	if lag == 0 {
		lag = defaultLag
	}
	month := recon.Duration(eventHistory)
	sheet := recon.Sheet{
		System: s.system,
		Kinds:  kindsThat(func(*kind) bool { return true }),
		Abilities: []recon.Ability{
			{Method: recon.ByID, Consistency: recon.Strong, Lag: lag},
			{Method: recon.ByList, Consistency: recon.Strong, Lag: lag, NeedsMark: []recon.Mark{recon.MarkReference}},
			// An event is a snapshot, comes late, and may name no request after a repair
			// by Stripe: it finds, and its silence proves nothing.
			{Method: recon.ByKey, Consistency: recon.Eventual, Lag: lag, NeedsMark: []recon.Mark{recon.MarkKey}, History: month,
				Kinds: kindsThat(func(k *kind) bool { return len(k.made) > 0 })},
			{Method: recon.ByChanges, Consistency: recon.Eventual, Lag: lag, NeedsMark: []recon.Mark{recon.MarkKey, recon.MarkReference}, History: month},
			{Method: recon.BySearch, Consistency: recon.Eventual, Lag: lag, NeedsMark: []recon.Mark{recon.MarkReference},
				Kinds: kindsThat(func(k *kind) bool { return k.search != nil })},
		},
		Marker:       s.marker,
		KeyLifetime:  recon.Duration(24 * time.Hour),
		RepeatAnswer: true,
		KeyHoldsOne:  true,
		InFlightMax:  recon.Duration(2 * time.Minute),
		Webhooks:     len(set.Webhook.Secrets) > 0 || len(set.Webhook.SecretFiles) > 0,
		PageSize:     s.pageSize,
		PerSecond:    float64(set.PerSecond),
		// Stripe counts these in units that are not those of ISO 4217.
		Exponents: map[string]int{"ISK": 2, "MGA": 0, "UGX": 2},
	}
	for _, p := range s.places {
		sheet.Accounts = append(sheet.Accounts, recon.Account{Account: p.account, Mode: p.mode})
	}
	if set.PerSecond == 0 {
		sheet.PerSecond = float64(set.defaultPerSecond())
	}
	return sheet
}

// Probe asks for the newest object where the last question was answered, at first for a
// refund of the first account. A key need not open every kind: what is forbidden is asked
// of the next one. It returns nil or an *sources.Error.
func (s *Source) Probe(ctx context.Context) error {
	at := s.memory.lastAnswered()
	var last *sources.Error
	for _, kind := range append([]string{at.kind}, s.sheet.Kinds...) {
		_, fault, err := s.page(ctx, listing{place: at.place, kind: kind, limit: 1})
		if err != nil {
			return s.fault("probe", sources.Timeout, err)
		}
		if fault == nil {
			s.memory.wasAnswered(address{at.place, kind})
			return nil
		}
		last = fault
		var reply replyError
		if !errors.As(fault.Err, &reply) || reply.Status != http.StatusForbidden || fault.Kind != sources.BadCredentials {
			break
		}
	}
	return last
}

func (s *Source) fault(op string, kind sources.Kind, cause error) *sources.Error {
	return &sources.Error{Source: s.name, Op: op, Kind: kind, Err: cause}
}
