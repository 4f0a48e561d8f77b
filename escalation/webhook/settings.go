package webhook

import (
	"net/url"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second // a claim on a notice must outlast it
	minSecret      = 16               // characters
)

// Settings are the settings of a destination of kind webhook.
type Settings struct {
	// URL is where notices are posted. APIURL stands in its place, for gateways and tests.
	URL    string `yaml:"url" json:"url"`
	APIURL string `yaml:"api_url" json:"api_url"`
	// Secret signs every request. It comes from SecretFile or the environment.
	Secret     recon.Secret `yaml:"secret" json:"secret"`
	SecretFile string       `yaml:"secret_file" json:"secret_file"`
	// Timeout is how long an answer is waited for; 0: 10 s. What takes longer is sent again
	// under the same key.
	Timeout recon.Duration `yaml:"timeout" json:"timeout"`
}

// ReadSecrets fills the secret that a file holds, without the white space around it.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	if s.SecretFile == "" {
		return nil
	}
	return s.Secret.ReadFile("secret_file", s.SecretFile, "the shared secret", read)
}

// Filled gives the settings as they are used, with their defaults.
func (s Settings) Filled(string) any {
	if s.APIURL == "" {
		s.APIURL = s.URL
	}
	if s.Timeout == 0 {
		s.Timeout = recon.Duration(defaultTimeout)
	}
	return s
}

// Validate reports all that is wrong.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := func(path, problem string) { faults = append(faults, recon.Fault{Path: path, Problem: problem}) }
	for _, a := range []struct{ path, value string }{{"url", s.URL}, {"api_url", s.APIURL}} {
		u, err := url.Parse(a.value)
		switch {
		case a.value == "" && (a.path == "api_url" || s.APIURL != ""):
		case a.value == "":
			fault("url", "is missing; write the address that takes the notices, such as https://pager.example/reconciler")
		case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
			fault(a.path, "is no address; write one like https://pager.example/reconciler, without a user")
		}
	}
	switch {
	case s.Secret.IsZero() && s.SecretFile == "":
		fault("secret_file", "is missing; name the file that holds the secret by which the receiver knows our requests")
	case !s.Secret.IsZero() && s.Secret.Reveal() != unreadSecret && len(s.Secret.Reveal()) < minSecret:
		fault("secret_file", "holds a secret of less than 16 characters, which could be guessed; make one with: openssl rand -hex 32")
	}
	if s.Timeout < 0 || s.Timeout.Std() > maxTimeout {
		fault("timeout", "must be at most 30s")
	}
	return faults
}

// unreadSecret stands for a secret where a file is checked without reading secrets.
const unreadSecret = "not read"
