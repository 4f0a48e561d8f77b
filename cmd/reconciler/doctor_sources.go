package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// lookBack is how far back the newest objects are looked for.
const lookBack = 24 * time.Hour

// sourceAdvice asks every source whether it can be asked, and whether what was made lately
// is seen as soon as its sheet says. Without a ledger it knows of nothing that was made.
func sourceAdvice(ctx context.Context, c *config.Config, l *ledger.Ledger) []ledger.Advice {
	var list []ledger.Advice
	for _, s := range c.Sources {
		client, err := s.Open(nil)
		if err != nil {
			list = append(list, faulty("source "+string(s.Name), "%v", err))
			continue
		}
		v := visit{about: "source " + string(s.Name), source: client, ledger: l}
		v.call(ctx, kindsOf(c, s.Name))
		v.hear(ctx, c)
		v.access()
		if s.Sheet.Webhooks && l != nil {
			v.arrivals(ctx)
		}
		list = append(list, v.list...)
	}
	return list
}

// kindsOf gives the kinds of effects that the actions at a source make.
func kindsOf(c *config.Config, source recon.SourceName) []string {
	var kinds []string
	for _, p := range c.Policies {
		if p.Source == source && !slices.Contains(kinds, p.Effect) {
			kinds = append(kinds, p.Effect)
		}
	}
	return kinds
}

// visit is one source that is asked, and what comes of it.
type visit struct {
	about  string
	source sources.Source
	ledger *ledger.Ledger // nil: there is none
	list   []ledger.Advice
}

func (v *visit) say(a ledger.Advice) { v.list = append(v.list, a) }

// call asks for every list that can be read, or else whether anybody answers.
func (v *visit) call(ctx context.Context, kinds []string) {
	lister, _ := v.source.(sources.Lister)
	var lists []sources.List
	if lister != nil {
		lists = lister.Lists(kinds)
	}
	for _, l := range lists {
		if !v.read(ctx, lister, l) {
			break
		}
	}
	if len(lists) == 0 {
		v.probe(ctx)
	}
}

// hear asks whether the witnesses that actions name can be read.
func (v *visit) hear(ctx context.Context, c *config.Config) {
	witness, ok := v.source.(sources.Witness)
	if !ok {
		return
	}
	for _, name := range witness.Witnesses() {
		if !slices.ContainsFunc(c.Policies, func(p recon.Policy) bool { return p.Witness == name }) {
			continue
		}
		probing, cancel := context.WithTimeout(ctx, probeWithin)
		v.tell(v.about+", witness "+name, "it can be heard", witness.ProbeWitness(probing, name))
		cancel()
	}
}

// access tells what is known of our key or role, once the source was asked.
func (v *visit) access() {
	guarded, ok := v.source.(sources.Guarded)
	if !ok {
		return
	}
	for _, a := range guarded.Access() {
		about := fmt.Sprintf("%s, %s %s", v.about, a.Account.Account, a.Account.Mode)
		if a.Is != "" {
			v.say(good(about, "%s", a.Is))
		}
		for _, lack := range a.Lacks {
			v.say(warning(about, "%s", lack))
		}
	}
}

func (v *visit) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	v.tell(v.about, "it answers", v.source.Probe(ctx))
}

// tell says what a probe came to, and where it failed what to do.
func (v *visit) tell(about, well string, err error) {
	if err == nil {
		v.say(good(about, "%s", well))
		return
	}
	var fault *sources.Error
	kind := sources.Unavailable
	if errors.As(err, &fault) {
		kind = fault.Kind
	}
	v.say(faulty(about, "%v: %s", err, remedy(kind)))
}

// read reads the newest page of a list, and holds it against the sheet. It is false where
// the next list would fare no better.
func (v *visit) read(ctx context.Context, lister sources.Lister, l sources.List) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	about := fmt.Sprintf("%s, %s of %s %s", v.about, recon.Noun(l.Kind), l.Account, l.Mode)
	now := time.Now()
	if v.ledger != nil {
		at, err := v.ledger.Now(ctx)
		if err != nil {
			v.say(faulty(about, "%v", err))
			return false
		}
		now = at
	}
	page, err := lister.Page(ctx, l, recon.Window{From: now.Add(-lookBack), To: now}, "", func() time.Time { return now })
	switch {
	case err != nil:
		v.say(faulty(about, "%v", err))
		return false
	case page.Look.Outcome == recon.Blind:
		why := sources.Kind(page.Look.Fault)
		v.say(faulty(about, "cannot be listed (%s, %s): %s", page.Look.Fault, page.Look.Detail, remedy(why)))
		return why != sources.Unavailable && why != sources.Timeout && why != sources.RateLimited
	}
	v.hold(ctx, about, l, page, now)
	return true
}

// hold compares how soon what was made is seen with what the sheet says of it.
func (v *visit) hold(ctx context.Context, about string, l sources.List, page sources.Page, now time.Time) {
	lag := lagOf(v.source.Sheet(), l.Kind)
	if v.ledger != nil && !page.Look.Window.To.IsZero() {
		w := recon.Window{From: page.Look.Window.From, To: now.Add(-lag)}
		id, made, err := v.ledger.NewestEffect(ctx, v.source.Name(), recon.Account{Account: l.Account, Mode: l.Mode}, l.Kind, w)
		if err != nil {
			v.say(faulty(about, "%v", err))
			return
		}
		if id != "" && !slices.ContainsFunc(page.Effects, func(e recon.Effect) bool { return e.ID == id }) {
			v.say(warning(about, "%s was made %s ago and is not in the list, which by the source's lag of %s must show it: "+
				"if nobody deleted it, raise the lag, or \"not there\" is believed too soon", recon.Printable(id), age(now.Sub(made)), age(lag)))
			return
		}
	}
	if len(page.Effects) == 0 {
		v.say(good(about, "can be listed, and none was made within %s", age(lookBack)))
		return
	}
	newest := now.Sub(page.Effects[0].CreatedAt)
	text := "can be listed; the newest is %s old"
	if newest <= lag {
		text += ", so it was seen within the lag of %s"
	} else {
		text += "; how soon one is seen (lag %s) shows only when one was just made"
	}
	v.say(good(about, text, age(newest), age(lag)))
}

// lagOf gives after how long the sheet takes a list to show what was made.
func lagOf(s recon.Sheet, kind string) time.Duration {
	for _, a := range s.Abilities {
		if a.Method == recon.ByList && a.Finds(kind) {
			return a.Lag.Std()
		}
	}
	return 0
}

func age(d time.Duration) string { return recon.Duration(max(0, d).Round(time.Second)).Text() }

// remedy is what to do about why a source could not look.
func remedy(k sources.Kind) string {
	switch k {
	case sources.BadCredentials:
		return "give the key the permission to read this, or write the right one into its file"
	case sources.WrongAccount:
		return "correct account or mode in the settings, or take the key of that account"
	case sources.RateLimited:
		return "try again later; lower per_second if it stays so"
	case sources.Unavailable, sources.Timeout:
		return "check the way to the address in the settings, and the provider's status page"
	case sources.Truncated, sources.Malformed:
		return "look whether something stands between, such as a proxy, and whether the address in the settings is right"
	}
	return "check the source's settings"
}

// arrivals tells how the events of the source came lately.
func (v *visit) arrivals(ctx context.Context) {
	about := v.about + ", webhook"
	a, err := inbox.Open(v.ledger).Arrivals(ctx, v.source.Name())
	now, clockErr := v.ledger.Now(ctx)
	endpoint := fmt.Sprintf("look at the endpoint of /webhooks/%s at the provider, its secret, and whether it reaches listen.public", v.source.Name())
	switch {
	case err != nil || clockErr != nil:
		v.say(faulty(about, "%v", errors.Join(err, clockErr)))
	case a.Delivered.IsZero():
		v.say(warning(about, "no event was ever delivered, and %s had to be read from the provider's list: %s", count(a.Missed, "event"), endpoint))
	case a.Missed > 0:
		v.say(warning(about, "the last event was delivered %s ago, and %s since had to be read from the provider's list: %s", age(now.Sub(a.Delivered)), count(a.Missed, "event"), endpoint))
	default:
		v.say(good(about, "the last event was delivered %s ago", age(now.Sub(a.Delivered))))
	}
}
