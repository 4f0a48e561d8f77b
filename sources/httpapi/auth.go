package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// AuthSettings are one of: a header with a token, a user with a password, or OAuth2
// client credentials.
type AuthSettings struct {
	// Header carries Prefix and the token. Default Authorization, and then "Bearer ".
	Header    string       `yaml:"header" json:"header"`
	Prefix    string       `yaml:"prefix" json:"prefix"`
	Token     recon.Secret `yaml:"token" json:"token"`
	TokenFile string       `yaml:"token_file" json:"token_file"`

	User         string       `yaml:"user" json:"user"`
	Password     recon.Secret `yaml:"password" json:"password"`
	PasswordFile string       `yaml:"password_file" json:"password_file"`

	// TokenURL is where client credentials are exchanged for a token. It is the only
	// address to which anything is posted.
	TokenURL         string       `yaml:"token_url" json:"token_url"`
	ClientID         string       `yaml:"client_id" json:"client_id"`
	ClientSecret     recon.Secret `yaml:"client_secret" json:"client_secret"`
	ClientSecretFile string       `yaml:"client_secret_file" json:"client_secret_file"`
	Scope            string       `yaml:"scope" json:"scope"`
}

func (a AuthSettings) isZero() bool { return a == AuthSettings{} }

func (a AuthSettings) hasToken() bool { return !a.Token.IsZero() || a.TokenFile != "" }

func (a *AuthSettings) readSecrets(at string, read func(string) ([]byte, error)) []recon.Fault {
	var faults []recon.Fault
	for _, s := range []struct {
		key, file string
		into      *recon.Secret
	}{
		{"token_file", a.TokenFile, &a.Token}, {"password_file", a.PasswordFile, &a.Password},
		{"client_secret_file", a.ClientSecretFile, &a.ClientSecret},
	} {
		faults = append(faults, s.into.ReadFile(at+"."+s.key, s.file, "the secret", read)...)
	}
	return faults
}

// credentials puts what proves who we are into a request.
type credentials interface {
	// sign may ask for a token first; a fault of that is one of the request.
	sign(ctx context.Context, r *http.Request) (sources.Kind, error)
	// refused tells that the provider did not accept what was signed.
	refused()
}

type static struct{ name, value string }

func (s static) sign(_ context.Context, r *http.Request) (sources.Kind, error) {
	if s.name != "" {
		r.Header.Set(s.name, s.value)
	}
	return "", nil
}

func (static) refused() {}

type basic struct{ user, password string }

func (b basic) sign(_ context.Context, r *http.Request) (sources.Kind, error) {
	r.SetBasicAuth(b.user, b.password)
	return "", nil
}

func (basic) refused() {}

func (a AuthSettings) credentials(client *http.Client) credentials {
	switch {
	case a.TokenURL != "":
		return &clientCredentials{set: a, client: client}
	case a.User != "":
		return basic{a.User, a.Password.Reveal()}
	case a.Token.IsZero():
		return static{}
	case a.Header == "":
		return static{"Authorization", orElse(a.Prefix, "Bearer ") + a.Token.Reveal()}
	}
	return static{a.Header, a.Prefix + a.Token.Reveal()}
}

// clientCredentials exchanges an id and a secret for a token (RFC 6749, 4.4) and keeps it
// until shortly before it ends.
type clientCredentials struct {
	set    AuthSettings
	client *http.Client

	mu    sync.Mutex // guards what follows
	token string
	until time.Time
}

const (
	tokenMargin   = 30 * time.Second // before its end a token is no longer used
	tokenLifetime = 5 * time.Minute  // of one that names none
)

func (c *clientCredentials) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = ""
}

func (c *clientCredentials) sign(ctx context.Context, r *http.Request) (sources.Kind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" || !time.Now().Before(c.until) {
		if kind, err := c.fetch(ctx); err != nil {
			return kind, err
		}
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	return "", nil
}

func (c *clientCredentials) fetch(ctx context.Context) (sources.Kind, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.set.Scope != "" {
		form.Set("scope", c.set.Scope)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.set.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return sources.OwnBug, errors.New("auth.token_url is no address")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(url.QueryEscape(c.set.ClientID), url.QueryEscape(c.set.ClientSecret.Reveal()))
	asked := time.Now()
	resp, err := c.client.Do(r)
	if err != nil {
		kind, cause := unreached(err)
		return kind, errors.New("token: " + cause.Error())
	}
	body, err := readBounded(resp.Body)
	if err != nil {
		kind, cause := unreached(err)
		return kind, errors.New("token: " + cause.Error())
	}
	if resp.StatusCode == http.StatusBadRequest {
		return sources.BadCredentials, errors.New("token: HTTP 400; check auth.client_id, client_secret and scope")
	}
	if kind, cause := judge(resp.StatusCode); cause != nil {
		return kind, errors.New("token: " + cause.Error())
	}
	var reply struct {
		Token   string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.Token == "" || reply.Type != "" && !strings.EqualFold(reply.Type, "bearer") {
		return sources.Malformed, errors.New("token: the reply is not that of a token endpoint")
	}
	life := tokenLifetime
	if reply.Expires > 0 && reply.Expires < 366*86400 {
		life = time.Duration(reply.Expires) * time.Second
	}
	c.token, c.until = reply.Token, asked.Add(life-min(tokenMargin, life/2))
	return "", nil
}
