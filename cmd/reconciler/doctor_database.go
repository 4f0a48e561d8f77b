package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func good(about, format string, args ...any) ledger.Advice {
	return ledger.Advice{Level: ledger.Good, About: about, Text: fmt.Sprintf(format, args...)}
}

func warning(about, format string, args ...any) ledger.Advice {
	return ledger.Advice{Level: ledger.Warning, About: about, Text: fmt.Sprintf(format, args...)}
}

func faulty(about, format string, args ...any) ledger.Advice {
	return ledger.Advice{Level: ledger.Faulty, About: about, Text: fmt.Sprintf(format, args...)}
}

// examine asks the database. What is wrong with it is advice; only wrong use is an error.
// The ledger is nil where it cannot be asked; done is always to be called.
func (a *app) examine(ctx context.Context, c *config.Config, answer *doctorAnswer) (l *ledger.Ledger, done func(), err error) {
	none := func() {}
	l, done, err = a.openLedger(ctx, c)
	if err != nil {
		if exitCode(err) == exitUsage || errors.Is(err, context.Canceled) {
			return nil, none, err
		}
		answer.Advice = append(answer.Advice, faulty("database", "%v", err))
		return nil, none, nil
	}
	d, err := l.Durability(ctx, time.Now)
	if err != nil {
		answer.Advice = append(answer.Advice, faulty("database", "%v", err))
		return nil, done, nil
	}
	answer.Database = fmt.Sprintf("PostgreSQL %s, schema of this program, tenant %s", d.ServerVersion, l.Tenant())
	answer.Advice = append(answer.Advice, durabilityAdvice(d, c.Database.DirectURL != "")...)
	answer.Advice = append(answer.Advice, directAdvice(ctx, c)...)
	for _, ask := range []func(context.Context, *config.Config, *ledger.Ledger) ([]ledger.Advice, error){
		loginAdvice, policyAdvice, scheduleAdvice,
	} {
		list, err := ask(ctx, c, l)
		if err != nil {
			list = []ledger.Advice{faulty("database", "%v", err)}
		}
		answer.Advice = append(answer.Advice, list...)
	}
	return l, done, nil
}

// durabilityAdvice tells what is well, too.
func durabilityAdvice(d ledger.Durability, direct bool) []ledger.Advice {
	list := d.Advise(direct)
	lacks := func(about ...string) bool {
		return slices.ContainsFunc(list, func(a ledger.Advice) bool { return slices.Contains(about, a.About) })
	}
	if !lacks("fsync", "full_page_writes", "synchronous_commit") {
		list = append(list, good("durability", "fsync and full_page_writes are on, and commits wait for the disk"))
	}
	if !lacks("clock") {
		list = append(list, good("clock", "database and this host agree"))
	}
	switch {
	case !d.Pooled:
		list = append(list, good("pooler", "there is none between us and the server"))
	case direct:
		list = append(list, good("pooler", "there is one, and database.direct_url is to lead past it"))
	}
	return list
}

// directAdvice tries the way past the pooler, if there is to be one.
func directAdvice(ctx context.Context, c *config.Config) []ledger.Advice {
	const about = "direct_url"
	if c.Database.DirectURL == "" {
		return nil
	}
	l, err := ledger.Open(ctx, ledger.Options{URL: c.Database.DirectURL, Tenant: c.Tenant, MaxConns: 1})
	if err != nil {
		return []ledger.Advice{faulty(about, "%v", err)}
	}
	defer l.Close()
	d, err := l.Durability(ctx, time.Now)
	switch {
	case err != nil:
		return []ledger.Advice{faulty(about, "%v", err)}
	case d.Pooled:
		return []ledger.Advice{faulty(about, "leads to a pooler, and not past it: write the address of the server itself")}
	}
	return []ledger.Advice{good(about, "leads to the server itself")}
}

func loginAdvice(ctx context.Context, _ *config.Config, l *ledger.Ledger) ([]ledger.Advice, error) {
	in, err := l.Login(ctx)
	return []ledger.Advice{in.Advise()}, err
}

// policyAdvice holds the configured policies against those that the SQL functions obey.
func policyAdvice(ctx context.Context, c *config.Config, l *ledger.Ledger) ([]ledger.Advice, error) {
	stored, err := l.Policies(ctx)
	if err != nil {
		return nil, err
	}
	active := map[string]recon.Policy{}
	for _, p := range stored {
		active[p.Action] = p
	}
	const next = "run `reconciler policy apply`, or start `reconciler serve`, which does it"
	var list []ledger.Advice
	for _, p := range c.Policies {
		about, is := "policy "+p.Action, active[p.Action]
		switch same, err := ledger.SaySame(is, p); {
		case err != nil:
			return nil, err
		case is.Action == "":
			list = append(list, warning(about, "was never applied, so that nothing is opened or sent for the action: %s", next))
		case !same:
			list = append(list, warning(about, "says something else than version %d, which is in force: %s", is.Version, next))
		default:
			list = append(list, good(about, "version %d is in force", is.Version))
		}
		delete(active, p.Action)
	}
	for _, p := range stored {
		if _, left := active[p.Action]; left {
			list = append(list, warning("policy "+p.Action, "is in force and no longer configured: %s, or configure the action again", next))
		}
	}
	return list, nil
}

// late is how long after its due time a run is missed: a tick that meets another run, or
// a database that was away, is tried again within seconds.
const late = 2 * time.Minute

func scheduleAdvice(ctx context.Context, c *config.Config, l *ledger.Ledger) ([]ledger.Advice, error) {
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	var list []ledger.Advice
	if c.Schedule.Sweep.Off() {
		list = append(list, warning("schedule.sweep", "is off: a lost answer is found out only when somebody runs `reconciler sweep`"))
	}
	for _, p := range daemon.Agenda(c) {
		runs, err := l.LastRuns(ctx, p.Name, 1)
		if err != nil {
			return nil, err
		}
		var last ledger.Run // zero: it never ran
		if len(runs) > 0 {
			last = runs[0]
		}
		list = append(list, runAdvice(p, last, now))
	}
	return list, nil
}

// runAdvice judges the last run of one line of the schedule.
func runAdvice(p daemon.Planned, last ledger.Run, now time.Time) ledger.Advice {
	about := "run " + p.Name
	at := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
	due, next := daemon.LastDue(p.Spec, now), at(p.Spec.Next(now))
	switch {
	case last.ID == "":
		return warning(about, "never ran; it is due next at %s: start `reconciler serve`", next)
	case last.FinishedAt.IsZero() && last.LeaseUntil.After(now):
		return good(about, "is under way since %s, by %s; due next at %s", at(last.StartedAt), last.Holder, next)
	case last.FinishedAt.IsZero():
		return warning(about, "began at %s and its process ended without a word; the next one does it again: look whether `reconciler serve` runs", at(last.StartedAt))
	case last.StartedAt.Before(due) && now.Sub(due) > late:
		return warning(about, "was due at %s and last ran at %s: look whether `reconciler serve` runs", at(due), at(last.StartedAt))
	case last.Outcome != ledger.RunDone:
		return warning(about, "is %s since %s (%s); due next at %s: its log says more", last.Outcome, at(last.FinishedAt), last.Error, next)
	}
	return good(about, "last ran at %s; due next at %s", at(last.StartedAt), next)
}
