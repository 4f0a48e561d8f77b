package reports

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// shownFindings is how many findings a page lists. A page with more is not read; the
// JSON has all.
const shownFindings = 100

// Comparison is what a comparison of operations with effects found, as far as a page
// for people shows it.
type Comparison struct {
	From, To   time.Time // the window, half-open; zero: all that was read
	Now        time.Time // ages are counted to it
	Zone       *time.Location
	Operations int
	Effects    int
	Repeated   int // lines that said an effect again
	SetAside   int // rows of a file that are not ours
	// Classes count each operation and each effect once, by the classes' names.
	OperationClasses map[string]int
	EffectClasses    map[string]int
	Findings         []Compared
	Happened         []Happened // the record does not know it, and it was done
	Unseen           []Unseen
	Exponents        map[string]int // the providers' own decimals
}

// Compared is one finding with both sides. Where the operations and effects
// themselves are not at hand, the finding's ids stand for them.
type Compared struct {
	Finding    recon.Finding
	Operations []recon.Operation
	Effects    []recon.Effect
}

// Happened is an operation that is open in the record and was done.
type Happened struct {
	Operation recon.OperationID
	State     recon.State
	EffectID  string
	Money     recon.Money
	Target    string
}

// Unseen is a place that could not be looked at.
type Unseen struct {
	Source   recon.SourceName
	From, To time.Time
	Why      string
}

// Compare writes totals first, then what was not seen, then each finding with both
// sides' values and why. Findings stand by currency, since amounts of different ones
// do not compare; within one the dearest first, then the oldest.
func Compare(w io.Writer, c Comparison) error {
	p := newPage(c.Now, c.Zone)
	window := "everything that was read"
	if !c.From.IsZero() || !c.To.IsZero() {
		window = p.when(c.From) + " to " + p.when(c.To)
	}
	p.text("Compared ", window)
	s := count(c.Operations, "operation") + ", " + count(c.Effects, "effect")
	if c.Repeated > 0 {
		s += ", " + count(c.Repeated, "repeated line")
	}
	if c.SetAside > 0 {
		s += ", " + count(c.SetAside, "row") + " set aside"
	}
	p.line(s)
	p.outcome(c)
	return p.writeTo(w)
}

// outcome writes the classes, what was not seen, and the findings.
func (p *page) outcome(c Comparison) {
	p.classes(c)
	for _, u := range c.Unseen {
		p.text("NOT SEEN  ", fmt.Sprintf("%s, %s to %s: %s", u.Source, p.when(u.From), p.when(u.To), u.Why))
	}
	p.happened(c)
	p.compared(c)
}

// classes writes the classes that hold something, with the sums.
func (p *page) classes(c Comparison) {
	names := map[string]bool{}
	operations, effects := 0, 0
	for k, n := range c.OperationClasses {
		names[k] = names[k] || n > 0
		operations += n
	}
	for k, n := range c.EffectClasses {
		names[k] = names[k] || n > 0
		effects += n
	}
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.OperationClasses[b]+c.EffectClasses[b], c.OperationClasses[a]+c.EffectClasses[a]), cmp.Compare(a, b))
	})
	row := func(class, a, b string) { p.line(fmt.Sprintf("  %s %s %s", pad(class, 14), left(a, 12), left(b, 12))) }
	p.blank()
	row("class", "operations", "effects")
	var none []string
	for _, k := range order {
		if !names[k] {
			none = append(none, k)
			continue
		}
		row(k, cell(c.OperationClasses, k), cell(c.EffectClasses, k))
	}
	row("sum", number(operations), number(effects))
	if len(none) > 0 {
		slices.Sort(none)
		p.text("  none: ", strings.Join(none, ", "))
	}
	p.blank()
}

// cell writes a count, and nothing for a class that the side does not have.
func cell(classes map[string]int, k string) string {
	if n, ok := classes[k]; ok {
		return number(n)
	}
	return ""
}

// shownHappened is how many operations that were done after all a page lists.
const shownHappened = 20

// happened lists what the record does not know and was done: it needs nobody, and tells
// what a lost answer came to.
func (p *page) happened(c Comparison) {
	if len(c.Happened) == 0 {
		return
	}
	p.text("", count(len(c.Happened), "operation")+" that the record leaves open turned out to have happened:")
	for i, h := range c.Happened {
		if i == shownHappened {
			p.line(fmt.Sprintf("  and %s more; --format json lists all", number(len(c.Happened)-i)))
			break
		}
		p.text("  ", fmt.Sprintf("%s (%s), %s for %s: %s", h.Operation, h.State, orNone(h.Money.Text(c.Exponents)), h.Target, h.EffectID))
	}
	p.blank()
}

func (p *page) compared(c Comparison) {
	if len(c.Findings) == 0 {
		p.line("No findings.")
		return
	}
	kinds, money := map[recon.FindingKind]int{}, map[string]int64{}
	for _, f := range c.Findings {
		kinds[f.Finding.Kind]++
		if !f.Finding.Money.IsZero() {
			money[f.Finding.Money.Currency] += f.Finding.Money.Minor
		}
	}
	p.text(count(len(c.Findings), "finding")+": ", tally(kinds))
	if len(money) > 0 {
		p.text("At stake: ", amounts(money, c.Exponents))
	}
	list := slices.Clone(c.Findings)
	slices.SortStableFunc(list, dearest)
	for i, f := range list {
		if i == shownFindings {
			p.blank()
			p.line(fmt.Sprintf("and %s more; --format json lists all", number(len(list)-i)))
			return
		}
		p.blank()
		p.one(i+1, f, c.Exponents)
	}
}

func tally(kinds map[recon.FindingKind]int) string {
	var parts []string
	for _, k := range recon.FindingKinds {
		if kinds[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", number(kinds[k]), k))
		}
	}
	return strings.Join(parts, ", ")
}

func amounts(money map[string]int64, exponents map[string]int) string {
	var parts []string
	for _, currency := range slices.Sorted(maps.Keys(money)) {
		parts = append(parts, recon.Money{Minor: money[currency], Currency: currency}.Text(exponents))
	}
	return strings.Join(parts, ", ")
}

// dearest orders findings: by currency, those without an amount last; then by
// amount, age, kind and identity.
func dearest(a, b Compared) int {
	if a.Finding.Money.IsZero() != b.Finding.Money.IsZero() {
		if a.Finding.Money.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.Finding.Money.Currency, b.Finding.Money.Currency),
		cmp.Compare(b.Finding.Money.Minor, a.Finding.Money.Minor),
		a.began().Compare(b.began()),
		cmp.Compare(a.Finding.Kind, b.Finding.Kind),
		cmp.Compare(a.Finding.Fingerprint(), b.Finding.Fingerprint()))
}

// began is when the oldest thing in a finding was made.
func (f Compared) began() time.Time {
	var first time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for _, o := range f.Operations {
		earlier(o.CreatedAt)
	}
	for _, e := range f.Effects {
		earlier(e.CreatedAt)
	}
	return first
}

// one writes one finding: what, both sides, and why.
func (p *page) one(n int, f Compared, exponents map[string]int) {
	head := fmt.Sprintf("%d. %s (%s)", n, f.Finding.Kind, f.Finding.Certainty)
	if !f.Finding.Money.IsZero() {
		head += ", " + f.Finding.Money.Text(exponents)
	}
	if at := f.began(); !at.IsZero() && p.now.After(at) {
		head += ", " + span(p.now.Sub(at)) + " old"
	}
	p.text("", head+": "+f.Finding.Kind.Text())
	p.ours(f, exponents)
	p.theirs(f, exponents)
	for _, d := range f.Finding.Observed {
		if d.Ours == "" && len(f.Finding.Operations) == 0 {
			continue // with nothing of ours beside it nothing differs; the effect's own line says it
		}
		p.text("   differs ", fmt.Sprintf("%s: ours %s, theirs %s", d.Field, orNone(d.Ours), orNone(d.Theirs)))
	}
	if f.Finding.Reason != "" {
		p.text("   why     ", f.Finding.Reason)
	}
}

func (p *page) ours(f Compared, exponents map[string]int) {
	known := map[recon.OperationID]bool{}
	for _, o := range f.Operations {
		known[o.ID] = true
		p.text("   ours    ", fmt.Sprintf("%s: %s of %s for %s, %s, opened %s%s", o.ID, o.Action, o.Money.Text(exponents), o.Target,
			o.State, p.when(o.CreatedAt), place(o)))
	}
	for _, id := range f.Finding.Operations {
		if !known[id] {
			p.text("   ours    ", string(id))
		}
	}
	if len(f.Operations)+len(f.Finding.Operations) == 0 {
		p.line("   ours    no operation")
	}
}

func (p *page) theirs(f Compared, exponents map[string]int) {
	known := map[recon.EffectRef]bool{}
	for _, e := range f.Effects {
		known[e.Ref()] = true
		p.text("   theirs  ", fmt.Sprintf("%s: %s of %s, %s, made %s at %s, account %s, mode %s", e.ID, recon.Noun(e.Kind),
			e.Money.Text(exponents), e.Status.Text(), p.when(e.CreatedAt), e.Source, orNone(e.Account), orNone(e.Mode)))
	}
	for _, e := range f.Finding.Effects {
		if !known[e] {
			p.text("   theirs  ", fmt.Sprintf("%s: %s at %s, account %s, mode %s", e.ID, recon.Noun(e.Kind), e.Source,
				orNone(e.Account), orNone(e.Mode)))
		}
	}
	if len(f.Effects)+len(f.Finding.Effects) == 0 {
		p.line("   theirs  no effect")
	}
}
