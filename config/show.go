package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Resolved is the configuration as it is used: defaults filled in, policies complete,
// secrets redacted.
type Resolved struct {
	File         string                  `json:"file"`
	Tenant       string                  `json:"tenant"`
	Zone         string                  `json:"zone"`
	Database     resolvedDatabase        `json:"database"`
	Listen       resolvedListen          `json:"listen"`
	Sources      []resolvedMember        `json:"sources"`
	Actions      map[string]recon.Policy `json:"actions"`
	Schedule     map[string]string       `json:"schedule"`
	Reports      Reports                 `json:"reports"`
	People       []Person                `json:"people"`
	ApproveAbove map[string]int64        `json:"approve_above"`
	Destinations []resolvedMember        `json:"destinations"`
	Escalation   escalationSection       `json:"escalation"` // without what stands above
	Limits       map[string]int          `json:"limits"`
	Notes        []string                `json:"notes"`
}

type resolvedDatabase struct {
	URL       string `json:"url"`
	DirectURL string `json:"direct_url"`
}

type resolvedListen struct {
	Public    string `json:"public"`
	Private   string `json:"private"`
	TokenFile string `json:"token_file"`
}

type resolvedMember struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind"`
	Settings any          `json:"settings"` // its secrets print themselves as [redacted]
	Sheet    *recon.Sheet `json:"sheet,omitempty"`
}

// Resolve gives the configuration for showing.
func (c *Config) Resolve() Resolved {
	r := Resolved{
		File: c.Path, Tenant: c.Tenant, Zone: c.Zone.String(),
		Database:     resolvedDatabase{URL: MaskURL(c.Database.URL), DirectURL: MaskURL(c.Database.DirectURL)},
		Listen:       resolvedListen(c.Listen),
		Sources:      []resolvedMember{},
		Actions:      map[string]recon.Policy{},
		Schedule:     map[string]string{"sweep": c.Schedule.Sweep.Text, "audit": c.Schedule.Audit.Text, "reverify": c.Schedule.Reverify.Text, "report": c.Schedule.Report.Text},
		Reports:      Reports{Out: c.Reports.Out, To: append([]string{}, c.Reports.To...)},
		People:       append([]Person{}, c.People...),
		ApproveAbove: map[string]int64{},
		Destinations: []resolvedMember{},
		Escalation:   shownEscalation(c.Escalation.section),
		Limits:       map[string]int{"changes_per_run": c.Limits.ChangesPerRun},
		Notes:        []string{},
	}
	for _, s := range c.Sources {
		sheet := s.Sheet
		sheet.Abilities = slices.Clone(sheet.Abilities)
		for i, a := range sheet.Abilities {
			sheet.Abilities[i].NeedsMark = append([]recon.Mark{}, a.NeedsMark...) // [] instead of null
		}
		r.Sources = append(r.Sources, resolvedMember{Name: string(s.Name), Kind: s.Kind, Settings: filled(string(s.Name), s.settings), Sheet: &sheet})
	}
	for _, d := range c.Destinations {
		r.Destinations = append(r.Destinations, resolvedMember{Name: d.Name, Kind: d.Kind, Settings: filled(d.Name, d.settings)})
	}
	maps.Copy(r.ApproveAbove, c.ApproveAbove)
	for _, p := range c.Policies {
		r.Actions[p.Action] = p
	}
	for _, n := range c.Notes {
		r.Notes = append(r.Notes, n.String())
	}
	return r
}

// shownEscalation has [] and {} instead of null.
func shownEscalation(s escalationSection) escalationSection {
	ladders := map[string][]step{}
	for name, steps := range s.Ladders {
		ladders[name] = append([]step{}, steps...)
	}
	s.Ladders, s.Quiet, s.Digest.To = ladders, append([]quiet{}, s.Quiet...), append([]string{}, s.Digest.To...)
	return s
}

// filled gives a member's settings as they are used, where it says how.
func filled(name string, settings any) any {
	if f, ok := settings.(interface{ Filled(name string) any }); ok {
		return f.Filled(name)
	}
	return settings
}

// YAML writes the resolved configuration for people.
func (r Resolved) YAML() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return yaml.JSONToYAML(b)
}

var keywordPassword = regexp.MustCompile(`(?i)(\b(?:ssl)?password\s*=\s*)('[^']*'|\S+)`)

// MaskURL hides the password of a PostgreSQL connection string of either form. What
// cannot be read is hidden whole.
func MaskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "[redacted]"
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
		}
	}
	q := u.Query()
	for _, key := range []string{"password", "sslpassword"} {
		if q.Has(key) {
			q.Set(key, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return keywordPassword.ReplaceAllString(s, "${1}xxxxx")
	}
	return u.String()
}
