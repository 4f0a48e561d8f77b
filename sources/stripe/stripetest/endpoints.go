package stripetest

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxEndpoints is how many endpoints one account may have.
const maxEndpoints = 16

// Endpoint is where an account's events are posted, and what befalls them on the way.
// URL, Account, Mode and Secrets are needed.
type Endpoint struct {
	URL           string
	Account, Mode string
	// Connect makes it an endpoint for the events of the accounts that are connected to
	// Account, instead of its own. In live mode it gets those of test mode too.
	Connect bool
	// Secrets are those that are active: each makes one signature.
	Secrets []string
	// Types are the events that it wants, by name or with *. Empty: all.
	Types []string
	// APIVersion is that in which its events are rendered. Empty: Options.APIVersion.
	APIVersion string
	// Reshape changes an object before it is sent, as a version does that nobody knows yet.
	// It may be called by several goroutines, and must not call the server.
	Reshape func(typ string, object map[string]any)
	Trouble Trouble
}

// Trouble is what befalls events on their way, by the seed. Numbers are probabilities
// for each event.
type Trouble struct {
	Lost   float64 // it is never posted
	Twice  float64 // it is posted once more, though it was taken
	Forged float64 // a stranger posts one like it, with a secret of his own
	// Early is for events that a request makes: they are posted before its answer is
	// given.
	Early float64
	// Delay is how late an event may be posted at first. What happens within that time
	// arrives in any order.
	Delay time.Duration
	// Shuffled posts what is due at the same call of Post in any order, repeats included.
	Shuffled bool
}

// Hook is an endpoint of a running server. Its methods may be called concurrently.
type Hook struct {
	server  *Server
	number  int
	removed bool // guarded by the server's mu, as is spec
	spec    Endpoint
}

// AddEndpoint registers an endpoint. Events that exist already are not posted to it.
func (s *Server) AddEndpoint(e Endpoint) (*Hook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("stripetest: add endpoint: URL %q is no address to post to", e.URL)
	case s.places[placeID{e.Account, e.Mode}] == nil:
		return nil, fmt.Errorf("stripetest: add endpoint: account %q in mode %q is not among Options.Accounts", e.Account, e.Mode)
	case len(e.Secrets) == 0 || slices.Contains(e.Secrets, ""):
		return nil, errors.New("stripetest: add endpoint: give at least one secret to sign with, and none that is empty")
	case s.standing(e.Account, e.Mode) >= maxEndpoints:
		return nil, fmt.Errorf("stripetest: add endpoint: account %s %s has %d, and no account may have more", e.Account, e.Mode, maxEndpoints)
	}
	if e.APIVersion == "" {
		e.APIVersion = s.opt.APIVersion
	}
	e.Secrets, e.Types = slices.Clone(e.Secrets), slices.Clone(e.Types)
	h := &Hook{server: s, number: len(s.hooks) + 1, spec: e}
	s.hooks = append(s.hooks, h)
	return h, nil
}

func (s *Server) standing(account, mode string) int {
	n := 0
	for _, h := range s.hooks {
		if !h.removed && h.spec.Account == account && h.spec.Mode == mode {
			n++
		}
	}
	return n
}

// SetSecrets replaces the active secrets: two while one is being rolled.
func (h *Hook) SetSecrets(secrets ...string) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.spec.Secrets = slices.Clone(secrets)
}

// SetTrouble changes what befalls the events that happen from now on.
func (h *Hook) SetTrouble(t Trouble) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.spec.Trouble = t
}

// Remove takes the endpoint away, and with it what it has not got yet.
func (h *Hook) Remove() {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.removed = true
}

// wants reports whether an event of a place is posted to the endpoint.
func (h *Hook) wants(p *place, e *Event) bool {
	own := p.account == h.spec.Account && p.mode == h.spec.Mode
	connected := p.platform == h.spec.Account && (p.mode == h.spec.Mode || h.spec.Mode == "live")
	switch {
	case h.removed, h.spec.Connect && !connected, !h.spec.Connect && !own:
		return false
	case h.spec.APIVersion < versionRefundEvents && strings.HasPrefix(e.Type, "refund.") && e.snapshot.ref("charge") != "":
		return false
	}
	return len(h.spec.Types) == 0 || slices.ContainsFunc(h.spec.Types, func(pattern string) bool { return typeFits(pattern, e.Type) })
}
