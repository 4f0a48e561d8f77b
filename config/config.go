package config

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Config is a file that was read, filled with defaults and checked.
type Config struct {
	Path     string // empty: no file, defaults only
	Tenant   string
	Zone     *time.Location
	Database Database
	Listen   Listen
	Sources  []Source
	Policies []recon.Policy // one per action, by action name; versions come from the ledger
	Schedule Schedule
	Reports  Reports
	People   []Person
	// ApproveAbove is above which amounts, in minor units by currency, two people must agree.
	ApproveAbove map[string]int64
	Destinations []Destination
	Escalation   Escalation
	Limits       Limits
	// SecretFiles are the files from which secrets were read, each once, by name.
	SecretFiles []string
	Notes       []Note
}

// file is the shape of the YAML document.
type file struct {
	Tenant     string              `yaml:"tenant"`
	Zone       string              `yaml:"zone"`
	Database   Database            `yaml:"database"`
	Listen     Listen              `yaml:"listen"`
	Sources    []member            `yaml:"sources"`
	Actions    map[string]ast.Node `yaml:"actions"`
	Schedule   scheduleText        `yaml:"schedule"`
	Reports    Reports             `yaml:"reports"`
	People     []Person            `yaml:"people"`
	Escalation escalationSection   `yaml:"escalation"`
	Limits     Limits              `yaml:"limits"`
}

// member is one entry of a family: its kind decides what settings means.
type member struct {
	Name     string   `yaml:"name"`
	Kind     string   `yaml:"kind"`
	Settings ast.Node `yaml:"settings"`
}

// Database says where the ledger is.
type Database struct {
	// URL is a PostgreSQL connection string, or local:DIR for a trial server.
	URL string `yaml:"url"`
	// DirectURL reaches the server past a pooler, for migrations. Empty: URL.
	DirectURL string `yaml:"direct_url"`
}

// Listen says where the daemon answers.
type Listen struct {
	Public    string `yaml:"public"`
	Private   string `yaml:"private"`
	TokenFile string `yaml:"token_file"`
}

// Reports says what becomes of the report that is made of every day.
type Reports struct {
	// Out is the folder for its files; empty: none is made.
	Out string `yaml:"out" json:"out"`
	// To are the destinations that are told; none: those of the digest.
	To []string `yaml:"to" json:"to"`
}

// Limits bound what one run may do.
type Limits struct {
	// ChangesPerRun is how many operations one run may set to failed, pending
	// (released) or manual_review before it stops and says so.
	ChangesPerRun int `yaml:"changes_per_run"`
}

// Person maps somebody to a Slack user and a database role. The same name may stand at
// several accounts.
type Person struct {
	Name   string `yaml:"name" json:"name"`
	Slack  string `yaml:"slack" json:"slack,omitempty"`
	Role   string `yaml:"role" json:"role,omitempty"`
	DBRole string `yaml:"db_role" json:"db_role,omitempty"`
}

func defaults() file {
	return file{
		Tenant:   "default",
		Zone:     "UTC",
		Listen:   Listen{Public: ":8080", Private: "127.0.0.1:9464"},
		Schedule: scheduleText{Sweep: "* * * * *", Audit: "15 2 * * *", Reverify: "0 4 * * *", Report: "0 3 * * *"},
		Escalation: escalationSection{
			Fold:   fold{At: escalation.DefaultFoldAt, Within: recon.Duration(escalation.DefaultFoldWithin)},
			Digest: digest{Schedule: "0 8 * * *"},
		},
		Limits: Limits{ChangesPerRun: 100_000},
	}
}

// Source gives the configured source of a name, and false when there is none.
func (c *Config) Source(name recon.SourceName) (Source, bool) {
	for _, s := range c.Sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}
