package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// faulter tells a fault of the settings at its key.
type faulter func(path, format string, args ...any)

// under tells faults at keys of what stands at a path.
func (f faulter) under(at string) faulter {
	return func(path, format string, args ...any) { f(at+"."+path, format, args...) }
}

// Validate reports all that is wrong. Secrets are judged only by whether they are named, so
// that a file can be checked without them.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := faulter(func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	})
	if !isAddress(s.APIURL) {
		fault("api_url", "is missing, or no base address; write it like https://api.example.com/v2, without user or query")
	}
	if s.PerSecond < 0 || s.PerMinute < 0 || s.PerSecond > 0 && s.PerMinute > 0 {
		fault("per_second", "and per_minute are two ways to say one thing; write one of them, above 0")
	}
	faults = append(faults, s.Keys.Faults()...)
	for name, value := range s.Headers {
		if name == "" || strings.EqualFold(name, "Authorization") || strings.ContainsAny(name+value, "\r\n\x00") {
			fault("headers", "%q cannot stand here; credentials belong under auth", name)
		}
	}
	if _, err := s.Success.compile(); err != nil {
		fault("success", "%v", err)
	}
	s.validateAccounts(fault)
	if len(s.Effects) == 0 {
		fault("effects", "is missing; write at least one kind with its fields and a look-up")
	}
	seen := map[string]bool{}
	for i, e := range s.Effects {
		at := fmt.Sprintf("effects[%d]", i)
		if seen[e.Kind] {
			fault(at+".kind", "%s is listed twice", e.Kind)
		}
		seen[e.Kind] = true
		_, list := compile(e, orElse(s.Marker, defaultMarker))
		for _, f := range list {
			fault(at+"."+f.Path, "%s", f.Problem)
		}
	}
	return faults
}

// compile gives the field that a reply must hold, nil where none is named.
func (s SuccessSettings) compile() (*pathAndText, error) {
	if s == (SuccessSettings{}) {
		return nil, nil
	}
	if s.Path == "" || s.Equals == "" {
		return nil, errors.New("needs path and equals: a field of every reply that is an answer, and its value")
	}
	path, err := ParsePath(s.Path)
	return &pathAndText{path, s.Equals}, err
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http")
}

func (s Settings) validateAccounts(fault faulter) {
	if len(s.Accounts) > 0 && (s.Account != "" || s.Mode != "") {
		fault("accounts", "stands beside account or mode; use one of the two forms")
	}
	s.Auth.validate(fault.under("auth"))
	seen := map[recon.Account]bool{}
	for i, a := range s.all() {
		at := fault.under(fmt.Sprintf("accounts[%d]", i))
		if len(s.Accounts) == 0 {
			at = fault
		} else if s.Accounts[i].Auth != s.Auth {
			s.Accounts[i].Auth.validate(at.under("auth"))
		}
		id := recon.Account{Account: a.Account, Mode: a.Mode}
		switch {
		case a.Account == "":
			at("account", "is missing; write the account's id")
		case seen[id]:
			at("account", "%s in mode %s is listed twice", a.Account, a.Mode)
		}
		seen[id] = true
		if a.Mode != sources.ModeLive && a.Mode != sources.ModeTest {
			at("mode", "is neither live nor test")
		}
	}
}

func (a AuthSettings) validate(fault faulter) {
	ways := 0
	for _, used := range []bool{a.hasToken(), a.User != "", a.TokenURL != ""} {
		if used {
			ways++
		}
	}
	switch {
	case ways > 1:
		fault("token", "stands beside another way; use one of token, user with password, and token_url with client_id")
	case a.TokenURL != "" && (!isAddress(a.TokenURL) || a.ClientID == "" || a.ClientSecret.IsZero() && a.ClientSecretFile == ""):
		fault("token_url", "needs an address, client_id and client_secret_file")
	case a.User != "" && a.Password.IsZero() && a.PasswordFile == "":
		fault("password_file", "is missing; name the file that holds the password")
	case ways == 0 && !a.isZero():
		fault("token_file", "is missing; name the file that holds the token")
	}
	if strings.ContainsAny(a.Header+a.Prefix, "\r\n\x00") {
		fault("header", "holds a line break")
	}
}
