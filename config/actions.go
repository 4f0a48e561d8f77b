package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var policyType = reflect.TypeFor[recon.Policy]()

// derivedPolicyKeys are keys of a stored policy that are never configured: they come
// from the action's name, from the ledger and from the source's sheet.
var derivedPolicyKeys = []string{"action", "version", "system", "accounts", "marker", "repeat_answer", "exponents"}

const (
	maxSpan  = recon.Duration(10 * 365 * 24 * time.Hour)
	maxLease = recon.Duration(300 * time.Second)
	maxRungs = 64
)

// action is one entry of the actions section while it is checked.
type action struct {
	d      *decoder
	path   string
	policy *recon.Policy
}

// policy builds the policy of one action: the contract's defaults, then the source's
// sheet, then what the file says.
func (d *decoder) policy(name string, n ast.Node, sources []Source) recon.Policy {
	p := recon.DefaultPolicy()
	p.Action = name
	a := action{d: d, path: join("actions", name), policy: &p}
	if n == nil || n.Type() == ast.NullType {
		d.fault(nil, a.path, "needs at least source, effect and class")
		return p
	}
	d.into(n, reflect.ValueOf(&p).Elem(), a.path)
	if shape(n) != "a mapping" {
		return p
	}
	a.checkName(name)
	a.checkWords()
	a.checkNumbers()
	a.checkTimes()
	a.joinSheet(sources)
	a.checkWitness(sources)
	return p
}

// fault tells a fault of one key, at the key if it is written and else at the action.
func (a *action) fault(key, format string, args ...any) {
	a.d.fault(nil, join(a.path, key), format, args...)
}

// given reports whether the file says something under the key.
func (a *action) given(key string) bool { return a.d.at[join(a.path, key)] != nil }

func (a *action) checkName(name string) {
	if name == "" || len(name) > 200 || strings.ContainsAny(name, " \t\r\n\x00") {
		a.d.fault(nil, a.path, "an action's name is text without spaces, at most 200 characters")
	}
}

func (a *action) checkWords() {
	p := a.policy
	for _, required := range []struct{ key, value string }{
		{"source", string(p.Source)}, {"effect", p.Effect}, {"class", string(p.Class)},
	} {
		if required.value == "" {
			a.fault(required.key, "is required")
		}
	}
	oneOf(a, "class", p.Class, recon.Irreversible, recon.Reversible, recon.Idempotent, recon.Read)
	oneOf(a, "repeat", p.Repeat, recon.RepeatNever, recon.RepeatSameKey)
	oneOf(a, "on_never_sent", p.OnNeverSent, recon.NeverSentKeep, recon.NeverSentFail)
	oneOf(a, "on_absent", p.OnAbsent, recon.AbsentMissing, recon.AbsentRelease)
	oneOf(a, "unverifiable", p.Unverifiable, "refused", "accepted")
	oneOf(a, "orphans", p.Orphans, "all", "marked")
	for i, name := range p.OrphansBy {
		if strings.TrimSpace(name) == "" {
			a.fault("orphans_by", "entry %d is empty", i+1)
		}
	}
	for i, m := range p.Marks {
		if m != recon.MarkKey && m != recon.MarkReference {
			a.fault("marks", "entry %d, %q, is not one of key, reference", i+1, m)
		}
	}
	if len(p.Marks) == 0 && a.given("marks") {
		a.fault("marks", "an action that sends neither key nor reference can never be found again; name key, reference or both")
	}
	if p.Witness == "none" {
		p.Witness = ""
	}
	for i, f := range p.ResultFields {
		if strings.TrimSpace(f) == "" {
			a.fault("result_fields", "entry %d is empty", i+1)
		}
	}
}

// oneOf checks a word against those that are possible. An empty one is told as
// missing elsewhere, or refused when it was written.
func oneOf[S ~string](a *action, key string, got S, words ...S) {
	if slices.Contains(words, got) || got == "" && !a.given(key) {
		return
	}
	list := make([]string, 0, len(words))
	for _, w := range words {
		list = append(list, string(w))
	}
	a.fault(key, "%q is not one of %s", got, strings.Join(list, ", "))
}

func (a *action) checkNumbers() {
	p := a.policy
	if p.PerCall < 1 || p.PerCall > 100 {
		a.fault("per_call", "%d is not between 1 and 100", p.PerCall)
	}
	if p.PerOperation < p.PerCall || p.PerOperation > 1000 {
		a.fault("per_operation", "%d is not between per_call (%d) and 1000", p.PerOperation, p.PerCall)
	}
	if p.Tolerance < 0 {
		a.fault("tolerance", "%d is negative; it is an amount in minor units", p.Tolerance)
	}
	if p.Absence.Looks < 1 || p.Absence.Looks > 100 {
		a.fault("absence", "looks: %d is not between 1 and 100", p.Absence.Looks)
	}
}

func (a *action) checkTimes() {
	p := a.policy
	for _, span := range []struct {
		key string
		d   recon.Duration
		min recon.Duration
	}{
		{"lease_max", p.LeaseMax, recon.Duration(time.Second)},
		{"check_after", p.CheckAfter, recon.Duration(time.Second)},
		{"stale_pending", p.StalePending, recon.Duration(time.Second)},
		{"unresolved_after", p.UnresolvedAfter, recon.Duration(time.Second)},
		{"give_up_after", p.GiveUpAfter, recon.Duration(time.Second)},
		{"in_flight_after", p.InFlightAfter, recon.Duration(time.Second)},
		{"blind_after", p.BlindAfter, recon.Duration(time.Second)},
		{"key_lifetime", p.KeyLifetime, 0}, {"key_margin", p.KeyMargin, 0},
		{"grace", p.Grace, 0}, {"duplicate_within", p.DuplicateWithin, 0},
		{"backoff", p.Backoff.Base, recon.Duration(time.Millisecond)}, {"backoff", p.Backoff.Max, p.Backoff.Base},
		{"absence", p.Absence.Over, 0},
	} {
		if span.d < span.min || span.d > maxSpan {
			a.fault(span.key, "%s is not between %s and %s", span.d, span.min, maxSpan)
		}
	}
	if p.LeaseMax > maxLease {
		a.fault("lease_max", "%s is longer than %s, the longest lease", p.LeaseMax, maxLease)
	}
	if p.UnresolvedAfter >= p.GiveUpAfter {
		a.fault("give_up_after", "%s is not later than unresolved_after (%s)", p.GiveUpAfter, p.UnresolvedAfter)
	}
	a.checkLadder()
}

func (a *action) checkLadder() {
	p := a.policy
	if len(p.Checks) == 0 || len(p.Checks) > maxRungs {
		a.fault("checks", "needs between 1 and %d times", maxRungs)
	}
	last := p.CheckAfter
	for i, c := range p.Checks {
		switch {
		case c > maxSpan:
			a.fault("checks", "entry %d, %s, is longer than %s", i+1, c, maxSpan)
		case i == 0 && c < last:
			a.fault("checks", "entry 1, %s, is earlier than check_after (%s)", c, last)
		case i > 0 && c <= last:
			a.fault("checks", "entry %d, %s, is not later than the one before it (%s); the times count from the moment the operation became unknown", i+1, c, last)
		}
		last = c
	}
}

// joinSheet takes over what the source's sheet says and checks what only makes sense
// together with it.
func (a *action) joinSheet(sources []Source) {
	p := a.policy
	index := slices.IndexFunc(sources, func(s Source) bool { return s.Name == p.Source })
	if index < 0 {
		if p.Source != "" {
			a.fault("source", "no source is named %q; configured are: %s", p.Source, sourceNames(sources))
		}
		return
	}
	if !sources[index].valid {
		return // its own faults are told; what follows would only repeat them
	}
	sheet := sources[index].Sheet
	p.System, p.Accounts, p.Marker = sheet.System, sheet.Accounts, sheet.Marker
	p.RepeatAnswer, p.Exponents = sheet.RepeatAnswer, sheet.Exponents
	if !a.given("key_lifetime") {
		p.KeyLifetime = sheet.KeyLifetime
	} else if p.KeyLifetime > sheet.KeyLifetime {
		a.fault("key_lifetime", "%s is longer than %s, what %s keeps", p.KeyLifetime, sheet.KeyLifetime, p.Source)
	}
	if len(sheet.Abilities) == 0 && !sheet.Webhooks {
		a.fault("source", "%s observes no effects, only witnesses; name the source at which the effect exists", p.Source)
	}
	// A source without kinds, such as one of JSON Lines, has every kind.
	if p.Effect != "" && len(sheet.Kinds) > 0 && !slices.Contains(sheet.Kinds, p.Effect) {
		a.fault("effect", "%s cannot observe %q; it observes %s", p.Source, p.Effect, strings.Join(sheet.Kinds, ", "))
	}
	a.checkKeys()
	if p.Class == recon.Irreversible && !sheet.Finds(*p) && !sheet.Webhooks && p.Unverifiable != "accepted" {
		a.fault("class", "irreversible, and %s can neither be asked for what a lost answer leaves known (marks: %s) nor sends webhooks: it could never be cleared up; "+
			"take another source or look-up, or say `unverifiable: accepted` to have every unknown put before a person", p.Source, marksText(p.Marks))
	}
}

// checkWitness holds the witness against those of all sources: it may stand elsewhere than
// the effect.
func (a *action) checkWitness(sources []Source) {
	name := a.policy.Witness
	if name == "" {
		return
	}
	var all []string
	for _, s := range sources {
		if !s.valid {
			return // its own faults are told, and the witness may be one of its
		}
		all = append(all, s.Witnesses...)
	}
	slices.Sort(all)
	switch n := slices.Index(all, name); {
	case n < 0 && len(all) == 0:
		a.fault("witness", "%q is not configured; a source of kind sqldb names witnesses", name)
	case n < 0:
		a.fault("witness", "%q is not configured; witnesses are %s", name, strings.Join(all, ", "))
	case n+1 < len(all) && all[n+1] == name:
		a.fault("witness", "%q is a witness of two sources; give each its own name", name)
	}
}

func marksText(marks []recon.Mark) string {
	if len(marks) == 0 {
		return "none"
	}
	list := make([]string, len(marks))
	for i, m := range marks {
		list[i] = string(m)
	}
	return strings.Join(list, ", ")
}

// checkKeys holds what would send an operation again against what keeps a repeat from
// being a second effect. SQL refuses such a repeat too; here it is told before the
// first lost answer.
func (a *action) checkKeys() {
	p := a.policy
	switch {
	case p.Repeat != recon.RepeatSameKey:
	case p.PerOperation == 1:
		a.fault("repeat", "same_key never comes to a repeat: per_operation is 1")
	case !p.NeedsNoKey():
		a.needKey("repeat", string(p.Repeat), "name class idempotent only if a repeat does no harm without a key")
	}
	switch {
	case p.OnAbsent != recon.AbsentRelease:
	case p.Class == recon.Irreversible && p.Repeat != recon.RepeatSameKey:
		a.fault("on_absent", "release never happens: an irreversible action is sent again only with `repeat: same_key`")
	default:
		a.needKey("on_absent", string(p.OnAbsent), "on_absent: missing puts what is absent before a person")
	}
}

// needKey tells why a repeat that rests on the provider's key can never be had, and
// what else there is.
func (a *action) needKey(key, word, instead string) {
	p := a.policy
	switch {
	case p.KeyLifetime == 0:
		a.fault(key, "%s needs a source that keeps idempotency keys, and %s keeps none: sending this %s action again could do it twice; %s",
			word, p.Source, p.Class, instead)
	case len(p.Marks) > 0 && !slices.Contains(p.Marks, recon.MarkKey):
		a.fault(key, "%s needs the key to be sent, and marks names only reference: sending again could do it twice; add key to marks", word)
	case p.KeyLifetime-p.KeyMargin-p.LeaseMax <= 0:
		a.fault(key, "%s leaves no time: key_lifetime (%s) is not longer than key_margin (%s) + lease_max (%s)",
			word, p.KeyLifetime, p.KeyMargin, p.LeaseMax)
	}
}

func sourceNames(sources []Source) string {
	if len(sources) == 0 {
		return "none"
	}
	list := make([]string, 0, len(sources))
	for _, s := range sources {
		list = append(list, string(s.Name))
	}
	return strings.Join(list, ", ")
}
