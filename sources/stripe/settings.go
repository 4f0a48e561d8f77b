package stripe

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	modeLive = "live"
	modeTest = "test"

	defaultAccount = "default"
	defaultMarker  = "operation_id"
	defaultAPIURL  = "https://api.stripe.com"
	// defaultLag is after how long an object is taken to be visible everywhere. Stripe
	// calls its top-level lists immediately consistent; a minute is caution.
	defaultLag = recon.Duration(time.Minute)
	// A tenth of what Stripe allows in live mode (100/s) and a fifth in test mode
	// (25/s): the account's own traffic keeps its share.
	defaultPerSecondLive = 10
	defaultPerSecondTest = 5
	defaultTolerance     = recon.Duration(5 * time.Minute)
	maxTolerance         = recon.Duration(24 * time.Hour)
)

// Settings are the settings of a source of kind stripe. Either account and mode stand
// for one account, or accounts lists several that share marker, system and webhook.
type Settings struct {
	// System is the name under which effects are stored; export files of the same
	// account name the same one. Default: the source's name.
	System  string `yaml:"system" json:"system"`
	Account string `yaml:"account" json:"account"` // acct_…; default "default"
	Mode    string `yaml:"mode" json:"mode"`       // live or test; default live
	// APIKey is a restricted key that may read events and the kinds that are asked for, for
	// refunds also charges. It comes from APIKeyFile or the environment.
	APIKey     recon.Secret `yaml:"api_key" json:"api_key"`
	APIKeyFile string       `yaml:"api_key_file" json:"api_key_file"`
	APIURL     string       `yaml:"api_url" json:"api_url"` // default: Stripe's own
	// Marker is the metadata key under which senders put our operation id.
	Marker   string            `yaml:"marker" json:"marker"`
	Accounts []AccountSettings `yaml:"accounts" json:"accounts"`
	Webhook  WebhookSettings   `yaml:"webhook" json:"webhook"`
	// Lag is after how long what exists is taken to be seen. Default 1m.
	Lag recon.Duration `yaml:"lag" json:"lag"`
	// PerSecond bounds our own requests. Default 10 in live mode, 5 in test mode.
	PerSecond int `yaml:"per_second" json:"per_second"`
}

// AccountSettings is one of several accounts of a source.
type AccountSettings struct {
	Account string `yaml:"account" json:"account"`
	Mode    string `yaml:"mode" json:"mode"`
	// Connected asks with the source's own key and the header Stripe-Account.
	Connected  bool         `yaml:"connected" json:"connected"`
	APIKey     recon.Secret `yaml:"api_key" json:"api_key"` // default: the source's
	APIKeyFile string       `yaml:"api_key_file" json:"api_key_file"`
}

// WebhookSettings are those of the deliveries that Stripe signs.
type WebhookSettings struct {
	// Secrets are all that are valid now: two while one is being rolled.
	Secrets     []recon.Secret `yaml:"secrets" json:"secrets"`
	SecretFiles []string       `yaml:"secret_files" json:"secret_files"`
	Tolerance   recon.Duration `yaml:"tolerance" json:"tolerance"` // default 5m
}

// ReadSecrets fills the keys and webhook secrets that files hold, each file's content
// without the white space around it. It reports every file that cannot be read.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	var faults []recon.Fault
	fill := func(path, name string, into *recon.Secret) {
		faults = append(faults, into.ReadFile(path, name, "the secret", read)...)
	}
	fill("api_key_file", s.APIKeyFile, &s.APIKey)
	for i := range s.Accounts {
		a := &s.Accounts[i]
		fill(fmt.Sprintf("accounts[%d].api_key_file", i), a.APIKeyFile, &a.APIKey)
	}
	if files := s.Webhook.SecretFiles; len(files) > 0 {
		s.Webhook.Secrets = make([]recon.Secret, len(files)) // so that reading twice does not double them
		for i, name := range files {
			fill(fmt.Sprintf("webhook.secret_files[%d]", i), name, &s.Webhook.Secrets[i])
		}
	}
	return faults
}

// Validate reports all that is wrong. Keys are judged only where they are filled in,
// so that a file can be checked without them.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	if s.APIURL != "" {
		u, err := url.Parse(s.APIURL)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
			fault("api_url", "is not a base address; write it like https://api.stripe.com, without user or query")
		}
	}
	if s.Marker != "" && (len(s.Marker) > 40 || strings.ContainsAny(s.Marker, `[]"\`)) {
		fault("marker", "is not a metadata key; at most 40 characters without brackets, quotes and backslashes")
	}
	if s.PerSecond < 0 {
		fault("per_second", "must not be negative")
	}
	if len(s.Accounts) > 0 && (s.Account != "" || s.Mode != "") {
		fault("accounts", "stands beside account or mode; use one of the two forms")
	}
	if s.APIKey.IsZero() && s.APIKeyFile == "" && s.needsOwnKey() {
		fault("api_key_file", "is missing; name the file that holds a restricted key with read permissions")
	}
	s.validateAccounts(fault)
	s.validateWebhook(fault)
	return faults
}

// validateWebhook looks at what would let a stranger in, or leave an event's account
// unknown.
func (s Settings) validateWebhook(fault func(path, format string, args ...any)) {
	for i, secret := range s.Webhook.Secrets {
		if secret.IsZero() && len(s.Webhook.SecretFiles) == 0 {
			fault(fmt.Sprintf("webhook.secrets[%d]", i), "is empty; write the endpoint's signing secret, whsec_…")
		}
	}
	switch t := s.Webhook.Tolerance; {
	case t < 0:
		fault("webhook.tolerance", "must not be negative")
	case t > maxTolerance:
		fault("webhook.tolerance", "is more than %s; old deliveries could be played back", maxTolerance)
	}
	if len(s.Webhook.Secrets) == 0 && len(s.Webhook.SecretFiles) == 0 {
		return
	}
	first := map[string]string{} // by mode: an account that is not a connected one
	for i, a := range s.Accounts {
		if a.Connected {
			continue
		}
		mode := orElse(a.Mode, modeLive)
		if first[mode] != "" && first[mode] != a.Account {
			fault(fmt.Sprintf("accounts[%d].account", i), "%s cannot share the webhook with %s in mode %s: an event names connected accounts only; "+
				"give it a source of its own", a.Account, first[mode], mode)
		}
		first[mode] = orElse(first[mode], a.Account)
	}
}

func (w WebhookSettings) tolerance() time.Duration {
	if w.Tolerance == 0 {
		return time.Duration(defaultTolerance)
	}
	return time.Duration(w.Tolerance)
}

// needsOwnKey reports whether some account has no key of its own.
func (s Settings) needsOwnKey() bool {
	for _, a := range s.Accounts {
		if a.APIKey.IsZero() && a.APIKeyFile == "" {
			return true
		}
	}
	return len(s.Accounts) == 0
}

func (s Settings) validateAccounts(fault func(path, format string, args ...any)) {
	seen := map[recon.Account]bool{}
	sharing := map[string]string{} // by mode: the account that the source's own key opens
	for i, a := range s.all() {
		at := func(name string) string {
			if len(s.Accounts) == 0 {
				return name
			}
			return fmt.Sprintf("accounts[%d].%s", i, name)
		}
		id := recon.Account{Account: a.Account, Mode: a.Mode}
		switch {
		case a.Account == "":
			fault(at("account"), "is missing; write the account's id, acct_…")
		case seen[id]:
			fault(at("account"), "%s in mode %s is listed twice", a.Account, a.Mode)
		}
		seen[id] = true
		if a.Mode != modeLive && a.Mode != modeTest {
			fault(at("mode"), "is neither live nor test")
		}
		own := !a.APIKey.IsZero() || a.APIKeyFile != ""
		switch first, taken := sharing[a.Mode]; {
		case own || a.Connected:
		case taken:
			fault(at("api_key_file"), "is missing: the source's own key opens %s; write connected: true or give a key", first)
		default:
			sharing[a.Mode] = a.Account
		}
		key := a.APIKey
		if !own {
			key = s.APIKey
		}
		if mode := modeOfKey(key); mode != "" && mode != a.Mode && (a.Mode == modeLive || a.Mode == modeTest) {
			fault(at("mode"), "is %s, and the key is one of %s mode", a.Mode, mode)
		}
	}
}

// all gives the accounts of both forms, with defaults filled in.
func (s Settings) all() []AccountSettings {
	if len(s.Accounts) == 0 {
		one := AccountSettings{Account: s.Account, Mode: s.Mode}
		if one.Account == "" {
			one.Account = defaultAccount
		}
		if one.Mode == "" {
			one.Mode = modeLive
		}
		return []AccountSettings{one}
	}
	list := make([]AccountSettings, len(s.Accounts))
	for i, a := range s.Accounts {
		if a.Mode == "" {
			a.Mode = modeLive
		}
		list[i] = a
	}
	return list
}

// Filled gives the settings of the source of that name as they are used, with their
// defaults and with empty lists for none.
func (s Settings) Filled(name string) any {
	s.System, s.Marker, s.APIURL = orElse(s.System, name), orElse(s.Marker, defaultMarker), orElse(s.APIURL, defaultAPIURL)
	if s.Lag == 0 {
		s.Lag = defaultLag
	}
	s.Webhook.Tolerance = recon.Duration(s.Webhook.tolerance())
	if s.PerSecond == 0 {
		s.PerSecond = s.defaultPerSecond()
	}
	list := s.all()
	if len(s.Accounts) == 0 {
		s.Account, s.Mode, list = list[0].Account, list[0].Mode, nil
	}
	s.Accounts = append([]AccountSettings{}, list...)
	s.Webhook.Secrets = append([]recon.Secret{}, s.Webhook.Secrets...)
	s.Webhook.SecretFiles = append([]string{}, s.Webhook.SecretFiles...)
	return s
}

// defaultPerSecond is that of live mode where one account is in it.
func (s Settings) defaultPerSecond() int {
	for _, a := range s.all() {
		if a.Mode == modeLive {
			return defaultPerSecondLive
		}
	}
	return defaultPerSecondTest
}

// modeOfKey reads the mode from a key's prefix (sk_live_, rk_test_…), empty when it
// does not say.
func modeOfKey(key recon.Secret) string {
	kind, rest, _ := strings.Cut(key.Reveal(), "_")
	if kind != "sk" && kind != "rk" {
		return ""
	}
	switch {
	case strings.HasPrefix(rest, "live_"):
		return modeLive
	case strings.HasPrefix(rest, "test_"):
		return modeTest
	}
	return ""
}
