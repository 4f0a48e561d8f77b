package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// DefaultPath is where the file is looked for when nobody names one.
const DefaultPath = "./reconciler.yaml"

const (
	maxFile  = 256 << 10
	maxDepth = 40
)

// MissingError says that a file that somebody named is not there or cannot be read.
type MissingError struct {
	Path string
	By   string // who named it: --config, RECONCILER_CONFIG
	Err  error
}

func (e *MissingError) Error() string {
	next := "correct the name, or write one with `reconciler config example > " + e.Path + "`"
	if errors.Is(e.Err, os.ErrPermission) {
		next = "let the user that runs this read it"
	}
	return fmt.Sprintf("cannot read the configuration %s (named by %s): %v; %s", e.Path, e.By, cause(e.Err), next)
}

// Unwrap gives the cause.
func (e *MissingError) Unwrap() error { return e.Err }

// Find loads the file that flag names, else the one that RECONCILER_CONFIG names,
// else ./reconciler.yaml. The last one may be missing; then the result is the
// defaults, with an empty Path.
func Find(flag string, env Env) (*Config, error) { return find(flag, env, readSecrets) }

// FindUnread is Find for who asks no provider and tells nobody: no secret is read, and
// one that is missing, or that only the daemon may read, is no fault.
func FindUnread(flag string, env Env) (*Config, error) { return find(flag, env, leaveSecrets) }

func find(flag string, env Env, s secrecy) (*Config, error) {
	path, by := flag, "--config"
	if path == "" {
		path, by = "", "RECONCILER_CONFIG"
		path, _ = env("RECONCILER_CONFIG")
	}
	if path == "" {
		path, by = DefaultPath, ""
	}
	text, err := read(path)
	if err != nil {
		if by == "" && errors.Is(err, os.ErrNotExist) {
			return parse("", nil, env, s)
		}
		if by == "" {
			by = "default"
		}
		return nil, &MissingError{Path: path, By: by, Err: err}
	}
	return parse(path, text, env, s)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return text, errors.Join(err, f.Close())
}

// Parse reads the text of a file and checks it. The error is a *Faults that holds
// everything that is wrong.
func Parse(path string, text []byte, env Env) (*Config, error) {
	return parse(path, text, env, readSecrets)
}

// secrecy says whether secrets are read.
type secrecy bool

const (
	readSecrets  secrecy = false
	leaveSecrets secrecy = true
)

func parse(path string, text []byte, env Env, s secrecy) (*Config, error) {
	d := &decoder{env: env, secrets: s, faults: &Faults{File: path}, at: map[string]ast.Node{}}
	root := d.document(text)
	if len(d.faults.List) > 0 {
		return nil, d.faults // nothing in it can be judged
	}
	doc := defaults()
	d.into(root, reflect.ValueOf(&doc).Elem(), "")
	c := d.build(doc)
	if len(d.faults.List) > 0 {
		d.faults.sort()
		return nil, d.faults
	}
	c.Path = path
	return c, nil
}

// document parses the one document of a file; nil when it is empty.
func (d *decoder) document(text []byte) ast.Node {
	if len(text) > maxFile {
		d.fault(nil, "", "the file is larger than %d bytes", maxFile)
		return nil
	}
	hiddenText := hide(strings.TrimPrefix(string(text), "\ufeff"))
	d.lines = strings.Split(hiddenText, "\n")
	if strings.ContainsAny(string(text), openBrace+closeBrace) {
		d.fault(nil, "", "the file holds private use characters (U+E000, U+E001); remove them")
		return nil
	}
	if line := tooDeep(d.lines); line > 0 {
		d.faults.List = append(d.faults.List, Fault{Line: line, Problem: fmt.Sprintf("is nested more than %d deep", maxDepth)})
		return nil
	}
	parsed, err := parser.ParseBytes([]byte(hiddenText), 0)
	if err != nil {
		d.syntax(err)
		return nil
	}
	switch {
	case len(parsed.Docs) == 0:
		return nil
	case len(parsed.Docs) > 1:
		d.fault(second(parsed), "", "a second YAML document (after ---) begins here; put everything into one")
		return nil
	}
	return parsed.Docs[0].Body
}

func second(f *ast.File) ast.Node {
	if body := f.Docs[1].Body; body != nil {
		return body
	}
	return nil
}

// syntax tells a parser's error with our own excerpt, since the library's shows the
// neighbouring lines as they are.
func (d *decoder) syntax(err error) {
	f := Fault{Problem: "is not YAML: " + mask(restore(err.Error()))}
	var at yaml.Error
	if errors.As(err, &at) {
		f.Problem = "is not YAML: " + mask(restore(at.GetMessage()))
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			f.Line, f.Column = tk.Position.Line, tk.Position.Column
			if f.Line >= 1 && f.Line <= len(d.lines) {
				f.Excerpt = excerpt(d.lines, f.Line-1)
			}
		}
	}
	d.faults.List = append(d.faults.List, f)
}

// tooDeep gives the line at which the nesting passes every sensible file, or 0: a
// recursive parser must not be led into the depth by a hostile one.
func tooDeep(lines []string) int {
	depth := 0
	for i, line := range lines {
		dashes := 0
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			case '-', '?', ':':
				dashes++
			case ' ', '\t':
			default:
				dashes = 0
			}
			if depth > maxDepth || dashes > 4*maxDepth {
				return i + 1
			}
		}
		if strings.TrimSpace(line) != "" && !strings.ContainsAny(line, "[]{},") {
			depth = 0 // a block line: brackets before it were text
		}
	}
	return 0
}

var memberName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// build checks the document and makes the value. It goes on after a fault, so that
// all are told.
func (d *decoder) build(doc file) *Config {
	c := &Config{
		Tenant: doc.Tenant, Database: doc.Database, Listen: doc.Listen,
		Limits: doc.Limits,
	}
	if c.Tenant == "" || len(c.Tenant) > 200 {
		d.fault(nil, "tenant", "must be text of 1 to 200 bytes")
	}
	zone, err := time.LoadLocation(doc.Zone)
	if err != nil || doc.Zone == "" || doc.Zone == "Local" {
		d.fault(nil, "zone", "%q is no time zone; write one like Europe/Berlin or UTC", doc.Zone)
		zone = time.UTC
	}
	c.Zone = zone
	if c.Limits.ChangesPerRun < 1 {
		d.fault(nil, "limits.changes_per_run", "must be at least 1")
	}
	d.listen(doc.Listen)
	d.buildSchedule(doc, c)
	d.buildMembers(doc, c)
	d.people(doc, c)
	for _, name := range slices.Sorted(maps.Keys(doc.Actions)) {
		c.Policies = append(c.Policies, d.policy(name, doc.Actions[name], c.Sources))
	}
	d.buildEscalation(doc, c)
	d.buildReports(doc.Reports, c)
	d.idle(c)
	slices.Sort(d.files)
	c.SecretFiles = slices.Compact(d.files)
	slices.SortStableFunc(d.notes, func(a, b Note) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Path, b.Path)) })
	c.Notes = d.notes
	return c
}

// idle says of a file without faults that nothing would be done by it, which nobody means.
func (d *decoder) idle(c *Config) {
	switch {
	case len(c.Sources) == 0:
		d.note("sources", "none is named, so nothing is ever looked at: name the provider that your operations are asked of, as `reconciler config example` shows")
	case len(c.Policies) == 0:
		d.note("actions", "none is named, so no operation can be opened and no source is asked: name what is asked of "+string(c.Sources[0].Name)+", as `reconciler config example` shows")
	}
}

func (d *decoder) buildSchedule(doc file, c *Config) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // any instant: only "never" is asked
	for _, s := range []struct {
		key, text string
		to        *Spec
	}{{"sweep", doc.Schedule.Sweep, &c.Schedule.Sweep}, {"audit", doc.Schedule.Audit, &c.Schedule.Audit}, {"reverify", doc.Schedule.Reverify, &c.Schedule.Reverify},
		{"report", doc.Schedule.Report, &c.Schedule.Report}} {
		spec, err := parseSpec(s.text, now)
		if err != nil {
			d.fault(nil, "schedule."+s.key, "%v", err)
			continue
		}
		*s.to = spec
	}
}

func (d *decoder) buildMembers(doc file, c *Config) {
	seen := map[string]bool{}
	for i, m := range doc.Sources {
		path := fmt.Sprintf("sources[%d]", i)
		named := d.checkMember(m, path, "source", seen)
		if s := d.source(m, path); named { // without a name its settings may be wrong too
			c.Sources = append(c.Sources, s)
		}
	}
}

func (d *decoder) checkMember(m member, path, noun string, seen map[string]bool) bool {
	if !memberName.MatchString(m.Name) {
		d.fault(nil, path+".name", "%q is no name for a %s; use small letters, digits, - and _, at most 63", m.Name, noun)
		return false
	}
	if seen[m.Name] {
		d.fault(nil, path+".name", "%q names two %ss; give each its own name", m.Name, noun)
		return false
	}
	seen[m.Name] = true
	return true
}
