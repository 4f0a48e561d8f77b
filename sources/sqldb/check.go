package sqldb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// maxName is the longest name that PostgreSQL keeps.
const maxName = 63

// faulter tells a fault of the settings at its key.
type faulter func(path, format string, args ...any)

// under tells faults at keys of what stands at a path.
func (f faulter) under(at string) faulter {
	return func(path, format string, args ...any) { f(at+"."+path, format, args...) }
}

// take tells faults that others found.
func (f faulter) take(faults []recon.Fault) {
	for _, one := range faults {
		f(one.Path, "%s", one.Problem)
	}
}

// Validate reports all that is wrong. Whether tables and columns are there is for the
// catalogue to say, when they are first asked for.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := faulter(func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	})
	s.validateURL(fault)
	s.validateNumbers(fault)
	fault.take(s.Keys.Faults())
	s.validateAccounts(fault)
	if len(s.Effects)+len(s.Witnesses) == 0 {
		fault("effects", "is missing; write at least one kind with its table and columns, or a witness")
	}
	seen := map[string]bool{}
	for i, e := range s.Effects {
		at := fault.under(fmt.Sprintf("effects[%d]", i))
		if e.Kind == "" || seen[e.Kind] {
			at("kind", "%q is missing or listed twice; write what your actions name as effect", e.Kind)
		}
		seen[e.Kind] = true
		e.validate(at, s.all())
	}
	named := map[string]bool{}
	for i, w := range s.Witnesses {
		at := fault.under(fmt.Sprintf("witnesses[%d]", i))
		if w.Name == "" || named[w.Name] {
			at("name", "%q is missing or listed twice; write what your actions name as witness", w.Name)
		}
		named[w.Name] = true
		w.validate(at)
	}
	return faults
}

// validateURL judges only by whether an address is named, and by its form where it was
// read, so that a file can be checked without its secrets.
func (s Settings) validateURL(fault faulter) {
	text := s.URL.Reveal()
	switch {
	case text == "" && s.URLFile == "":
		fault("url_file", "is missing; name the file that holds the connection string of a role that can only read")
	case strings.Contains(text, "://") || strings.Contains(text, "="):
		if _, err := pgx.ParseConfig(text); err != nil {
			fault("url", "is no connection string; write it like postgres://reader:PASSWORD@db.example.com/shop?sslmode=verify-full")
		}
	}
}

func (s Settings) validateNumbers(fault faulter) {
	for _, span := range []struct {
		key string
		d   recon.Duration
	}{{"statement_timeout", s.StatementTimeout}, {"lock_timeout", s.LockTimeout}, {"connect_timeout", s.ConnectTimeout}, {"in_flight", s.InFlight}} {
		if span.d < 0 {
			fault(span.key, "%s is negative", span.d)
		}
	}
	if s.PerSecond < 0 {
		fault("per_second", "%d is negative", s.PerSecond)
	}
	if s.PageSize < 0 || s.PageSize > maxRows {
		fault("page_size", "%d is not between 1 and %d", s.PageSize, maxRows)
	}
}

func (s Settings) validateAccounts(fault faulter) {
	if len(s.Accounts) > 0 && (s.Account != "" || s.Mode != "") {
		fault("accounts", "stands beside account or mode; use one of the two forms")
	}
	seen := map[recon.Account]bool{}
	for i, a := range s.all() {
		at := fault
		if len(s.Accounts) > 0 {
			at = fault.under(fmt.Sprintf("accounts[%d]", i))
		}
		switch {
		case a.Account == "":
			at("account", "is missing; write the account as the rows name it")
		case seen[a]:
			at("account", "%s in mode %s is listed twice", a.Account, a.Mode)
		}
		seen[a] = true
		if a.Mode != sources.ModeLive && a.Mode != sources.ModeTest {
			at("mode", "is neither live nor test")
		}
	}
}

func (e EffectSettings) validate(fault faulter, places []recon.Account) {
	checkNames(fault, e.Schema, e.Table)
	for _, r := range e.Columns.roles() {
		checkName(fault, "columns."+r.name, r.column)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Only)) {
		checkName(fault, "only."+name, name)
	}
	if e.Columns.ID == "" {
		fault("columns.id", "is missing; write the column that holds a row's id")
	}
	if e.Columns.CreatedAt == "" {
		fault("columns.created_at", "is missing; write the column that holds the time of a row's creation")
	}
	fault.take(e.words().Faults("columns"))
	if c := recon.Consistency(e.Consistency); c != recon.Strong && c != recon.Eventual {
		fault("consistency", "is missing; write strong where every effect stands in the table when the lag is over, else eventual: then not found proves nothing")
	}
	if e.Lag < 0 || e.History < 0 {
		fault("lag", "and history cannot be negative")
	}
	for _, p := range places[1:] {
		if p.Account != places[0].Account && e.Columns.Account == "" {
			fault("columns.account", "is missing; several accounts stand in the table, and nothing tells them apart")
		}
		if p.Mode != places[0].Mode && e.Columns.Mode == "" {
			fault("columns.mode", "is missing; several modes stand in the table, and nothing tells them apart")
		}
	}
}

func (w WitnessSettings) validate(fault faulter) {
	checkNames(fault, w.Schema, w.Table)
	ways := 0
	for _, c := range w.Columns.roles() {
		checkName(fault, "columns."+c.name, c.column)
		if c.finds != "" {
			ways++
		}
	}
	if ways != 1 {
		fault("columns", "needs one of target, reference, key and parent: by it an operation's object is found")
	}
	if w.Prefix != "" && w.Columns.Target == "" {
		fault("prefix", "is of no use without columns.target")
	}
	if (w.Columns.Status == "") != (len(w.Says) == 0) {
		fault("says", "and columns.status belong together: the column, and what its words mean")
	}
	for _, word := range slices.Sorted(maps.Keys(w.Says)) {
		if !recon.Word(w.Says[word]).Valid() {
			fault("says."+word, "%q is none of done, not_done and nothing", w.Says[word])
		}
	}
	if w.Columns.Status == "" && w.Columns.Amount == "" {
		fault("columns.status", "is missing; a witness says whether it is done, or for how much")
	}
	if w.Sums && w.Columns.Amount == "" {
		fault("sums", "is of no use without columns.amount")
	}
	if w.Lag < 0 {
		fault("lag", "cannot be negative")
	}
	fault.take(w.words().Faults("columns"))
}

func checkNames(fault faulter, schema, table string) {
	if table == "" {
		fault("table", "is missing; write the name of a table or view, as the catalogue spells it")
	}
	checkName(fault, "schema", schema)
	checkName(fault, "table", table)
}

// checkName refuses what no name in the catalogue can be. Any other text is only ever
// compared with the catalogue.
func checkName(fault faulter, at, name string) {
	if len(name) > maxName || strings.ContainsRune(name, 0) {
		fault(at, "is no name; PostgreSQL keeps at most %d bytes", maxName)
	}
}
