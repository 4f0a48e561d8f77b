package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/webhook"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

// Source is one configured source. Its settings were decoded and checked by the
// member of its kind.
type Source struct {
	Name  recon.SourceName
	Kind  string
	Sheet recon.Sheet
	// Open makes the client. It asks nobody anything.
	Open func(Watch) (sources.Source, error)
	// Format is how the source's export files are written.
	Format files.Format
	// Witnesses are the business objects that the source can be asked about.
	Witnesses []string
	settings  any
	valid     bool
}

// Watch is told of every request that a source makes: the endpoint without
// parameters, and the status or the kind of fault. Nil: nobody is.
type Watch func(endpoint, code string)

// memberSettings is what the settings of a member can do.
type memberSettings interface {
	ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault
	Validate() []recon.Fault
}

// settingsOf is a member's empty settings, to be decoded, and how they are checked.
type settingsOf struct {
	value any // a pointer
	check func(read func(name string) ([]byte, error)) []recon.Fault
}

func settings(s memberSettings) settingsOf {
	return settingsOf{value: s, check: func(read func(string) ([]byte, error)) []recon.Fault {
		return append(s.ReadSecrets(read), s.Validate()...)
	}}
}

// sourceKind joins a member: its settings, and how they become a source.
type sourceKind struct {
	settings func() settingsOf
	open     func(recon.SourceName, any, Watch) (sources.Source, error)
	// format says how the source's export files are written.
	format func(recon.SourceName, any) (files.Format, error)
}

// sourceKinds is the list of kinds of sources.
var sourceKinds = map[string]sourceKind{
	"files": {
		settings: func() settingsOf { return settings(&files.Settings{}) },
		open: func(name recon.SourceName, s any, _ Watch) (sources.Source, error) {
			return files.New(name, *s.(*files.Settings))
		},
		format: func(name recon.SourceName, s any) (files.Format, error) {
			return files.FormatOf(name, *s.(*files.Settings))
		},
	},
	"httpapi": {
		settings: func() settingsOf { return settings(&httpapi.Settings{}) },
		open: func(name recon.SourceName, s any, w Watch) (sources.Source, error) {
			return httpapi.New(name, *s.(*httpapi.Settings), httpapi.Options{OnRequest: w})
		},
		format: jsonLines,
	},
	"postmark": {
		settings: func() settingsOf { return settings(&httpapi.PostmarkSettings{}) },
		open: func(name recon.SourceName, s any, w Watch) (sources.Source, error) {
			return httpapi.NewPostmark(name, *s.(*httpapi.PostmarkSettings), httpapi.Options{OnRequest: w})
		},
		format: jsonLines,
	},
	"sqldb": {
		settings: func() settingsOf { return settings(&sqldb.Settings{}) },
		open: func(name recon.SourceName, s any, w Watch) (sources.Source, error) {
			return sqldb.New(name, *s.(*sqldb.Settings), sqldb.Options{OnRequest: w})
		},
		format: jsonLines,
	},
	"stripe": {
		settings: func() settingsOf { return settings(&stripe.Settings{}) },
		open: func(name recon.SourceName, s any, w Watch) (sources.Source, error) {
			return stripe.New(name, *s.(*stripe.Settings), stripe.Options{OnRequest: w})
		},
		format: func(name recon.SourceName, _ any) (files.Format, error) { return files.Stripe(name), nil },
	},
}

// jsonLines is the format of a source whose provider has no export that we know.
func jsonLines(name recon.SourceName, _ any) (files.Format, error) {
	f, _ := files.Builtin(files.JSONLines, name)
	return f, nil
}

func (d *decoder) source(m member, path string) Source {
	out := Source{Name: recon.SourceName(m.Name), Kind: m.Kind}
	kind, ok := sourceKinds[m.Kind]
	if !ok {
		d.fault(nil, path+".kind", "%q is no kind of source; known are %s", m.Kind, kindNames(sourceKinds))
		return out
	}
	own, at := kind.settings(), path+".settings"
	if !d.settings(m, at, own) {
		return out
	}
	open := func(w Watch) (sources.Source, error) { return kind.open(out.Name, own.value, w) }
	source, err := open(nil)
	if err != nil {
		d.fault(nil, at, "%v", err)
		return out
	}
	out.Sheet, out.Open, out.settings, out.valid = source.Sheet(), open, own.value, true
	if w, can := source.(sources.Witness); can {
		out.Witnesses = w.Witnesses()
	}
	if out.Format, err = kind.format(out.Name, own.value); err != nil {
		d.fault(nil, at, "%v", err)
	}
	out.Format = out.Format.Of(out.Sheet)
	return out
}

// Destination is one configured place where findings are told.
type Destination struct {
	Name string
	Kind string
	// Open makes the client, which shows times in the zone. It sends nothing.
	Open     func(zone *time.Location) (escalation.Notifier, error)
	settings any
}

// destinationKind joins a member: its settings, and how they become a notifier.
type destinationKind struct {
	settings func() settingsOf
	open     func(name string, s any, zone *time.Location, people map[string]string) (escalation.Notifier, error)
}

// destinationKinds is the list of kinds of destinations.
var destinationKinds = map[string]destinationKind{
	"slack": {
		settings: func() settingsOf { return settings(&slack.Settings{}) },
		open: func(name string, s any, zone *time.Location, people map[string]string) (escalation.Notifier, error) {
			return slack.New(name, *s.(*slack.Settings), slack.WithZone(zone), slack.WithPeople(people))
		},
	},
	"webhook": {
		settings: func() settingsOf { return settings(&webhook.Settings{}) },
		open: func(name string, s any, _ *time.Location, _ map[string]string) (escalation.Notifier, error) {
			return webhook.New(name, *s.(*webhook.Settings))
		},
	},
}

const maxSecret = 64 << 10

// destination checks a member. People are the Slack users whom it may call by name.
func (d *decoder) destination(m member, path string, people map[string]string) Destination {
	out := Destination{Name: m.Name, Kind: m.Kind}
	kind, ok := destinationKinds[m.Kind]
	if !ok {
		d.fault(nil, path+".kind", "%q is no kind of destination; known are %s", m.Kind, kindNames(destinationKinds))
		return out
	}
	own, at := kind.settings(), path+".settings"
	if !d.settings(m, at, own) {
		return out
	}
	out.settings = own.value
	out.Open = func(zone *time.Location) (escalation.Notifier, error) {
		return kind.open(out.Name, own.value, zone, people)
	}
	return out
}

// settings decodes and checks what a member says of itself.
func (d *decoder) settings(m member, at string, own settingsOf) bool {
	before := len(d.faults.List)
	d.into(m.Settings, reflect.ValueOf(own.value).Elem(), at)
	if len(d.faults.List) > before {
		return false // the member would only complain of what could not be read
	}
	for _, f := range own.check(d.secretFile) {
		d.fault(nil, join(at, f.Path), "%s", f.Problem)
	}
	return len(d.faults.List) == before
}

// secretFile reads a file that holds a secret, where secrets are read, and remembers it.
func (d *decoder) secretFile(name string) ([]byte, error) {
	if d.secrets == leaveSecrets {
		return []byte(unread), nil
	}
	d.files = append(d.files, name)
	return readSecret(name)
}

// readSecret reads a file that holds a secret and nothing else.
func readSecret(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSecret {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSecret)
	}
	return b, nil
}

func kindNames[K any](kinds map[string]K) string {
	list := make([]string, 0, len(kinds))
	for name := range kinds {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// cause drops the path that os errors repeat.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
