package stripetest

import (
	"fmt"
	"net/http"
	"strings"
)

type placeID struct{ account, mode string }

// place is one account in one mode: nothing in it is visible from another one.
type place struct {
	placeID
	platform string
	shelves  map[kind]*shelf
	keys     map[string]*storedKey
}

func (p *place) shelf(k kind) *shelf { return p.shelves[k] }

func (p *place) live() bool { return p.mode == "live" }

// object gives one by kind and id, or nil.
func (p *place) object(k kind, id string) object {
	if r := p.shelves[k].byID[id]; r != nil {
		return r.object
	}
	return nil
}

// refund, charge and intent give an object by id, or nil.
func (p *place) refund(id string) *Refund {
	r, _ := p.object(refundKind, id).(*Refund)
	return r
}

func (p *place) charge(id string) *Charge {
	c, _ := p.object(chargeKind, id).(*Charge)
	return c
}

func (p *place) intent(id string) *PaymentIntent {
	i, _ := p.object(intentKind, id).(*PaymentIntent)
	return i
}

// find gives the object with the id, whatever its kind, or nil.
func (p *place) find(id string) object {
	for _, k := range kinds {
		if o := p.object(k, id); o != nil {
			return o
		}
	}
	return nil
}

// credential is what an API key opens.
type credential struct {
	place *place
	opens permission
}

// permission is what a key may do.
type permission int

const (
	opensAll permission = iota
	opensReading
	opensEvents
	opensNothing
)

// allow reports whether a request is one that the key may make.
func (p permission) allow(r *http.Request) bool {
	events := r.URL.Path == "/v1/events" || strings.HasPrefix(r.URL.Path, "/v1/events/")
	switch p {
	case opensAll:
		return true
	case opensReading:
		return r.Method == http.MethodGet && r.URL.Path != "/v1/account"
	case opensEvents:
		return r.Method == http.MethodGet && events
	}
	return false
}

func (s *Server) openAccounts(accounts []Account) error {
	if len(accounts) == 0 {
		return fmt.Errorf("stripetest: Options.Accounts is empty: give at least one account")
	}
	s.places, s.keyring = map[placeID]*place{}, map[string]credential{}
	for _, a := range accounts {
		id := placeID{a.ID, a.Mode}
		switch {
		case a.ID == "" || (a.Mode != "live" && a.Mode != "test"):
			return fmt.Errorf("stripetest: account %q in mode %q: want an id, and live or test", a.ID, a.Mode)
		case s.places[id] != nil:
			return fmt.Errorf("stripetest: account %s %s is given twice", a.ID, a.Mode)
		case a.Key == "" && a.ReadKey == "" && a.EventsKey == "" && a.IdleKey == "" && a.Platform == "":
			return fmt.Errorf("stripetest: account %s %s can be opened by nobody: give a key or a platform", a.ID, a.Mode)
		}
		p := &place{placeID: id, platform: a.Platform, shelves: map[kind]*shelf{}, keys: map[string]*storedKey{}}
		for _, k := range kinds {
			p.shelves[k] = newShelf()
		}
		s.places[id] = p
		s.inOrder = append(s.inOrder, p)
		if err := s.cutKeys(p, a); err != nil {
			return err
		}
	}
	for _, p := range s.inOrder {
		if p.platform != "" && s.places[placeID{p.platform, p.mode}] == nil {
			return fmt.Errorf("stripetest: account %s %s names the platform %s, which is not given in that mode", p.account, p.mode, p.platform)
		}
	}
	return nil
}

func (s *Server) cutKeys(p *place, a Account) error {
	own := opensAll
	if strings.HasPrefix(a.Key, "rk_") {
		own = opensReading
	}
	for _, key := range []struct {
		text  string
		opens permission
	}{{a.Key, own}, {a.ReadKey, opensReading}, {a.EventsKey, opensEvents}, {a.IdleKey, opensNothing}} {
		if key.text == "" {
			continue
		}
		if _, taken := s.keyring[key.text]; taken {
			return fmt.Errorf("stripetest: account %s %s has a key that opens another one too", a.ID, a.Mode)
		}
		s.keyring[key.text] = credential{place: p, opens: key.opens}
	}
	return nil
}

// authenticate gives the place that a request may act on.
func (s *Server) authenticate(r *http.Request) (*place, *apiError) {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user, _, basic := r.BasicAuth(); basic {
		key, bearer = user, true
	}
	if !bearer || key == "" {
		return nil, &apiError{Status: http.StatusUnauthorized, Type: invalidRequest,
			Message: "You did not provide an API key."}
	}
	c, known := s.keyring[key]
	if !known {
		return nil, &apiError{Status: http.StatusUnauthorized, Type: invalidRequest,
			Message: "Invalid API Key provided: " + masked(key)}
	}
	p := c.place
	if account := r.Header.Get("Stripe-Account"); account != "" && account != p.account {
		p = s.places[placeID{account, c.place.mode}]
		if p == nil || p.platform != c.place.account {
			return nil, &apiError{Status: http.StatusForbidden, Type: invalidRequest, Code: "account_invalid",
				Message: fmt.Sprintf("The provided key '%s' does not have access to account '%s' (or that account does not exist).", masked(key), account)}
		}
	}
	if !c.opens.allow(r) {
		return p, &apiError{Status: http.StatusForbidden, Type: invalidRequest,
			Message: fmt.Sprintf("The provided key '%s' does not have the required permissions for this endpoint on account '%s'.", masked(key), p.account)}
	}
	return p, nil
}

// masked shows a key as the provider does: the beginning, and the last four.
func masked(key string) string {
	if len(key) < 12 {
		return "****"
	}
	return key[:7] + "****" + key[len(key)-4:]
}
