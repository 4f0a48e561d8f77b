package large

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/nightly"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// routine is what the product does by the clock, as its daemon would, but that a tick in
// which nothing is due is passed over: the moments of the ladders are known.
type routine struct {
	planned  map[tick]bool
	run      func(recon.SourceName) error // sweeps a source
	changed  func()                       // a finding may have changed
	mailAt   time.Time                    // when the card provider's next posting is on the agenda
	deaf     bool                         // nobody answers where events are posted
	telling  bool                         // a finding changed since people were told
	deadTill time.Time                    // a process died and gave nothing back: its leases last until then
	dying    map[room]ending              // how the next processes die
	in       room                         // which part of the product is at work
	said     int                          // what people said by the command line

	rereading, reverifying retry
}

type tick struct {
	source recon.SourceName
	at     time.Time
}

func newRoutine() routine { return routine{planned: map[tick]bool{}, dying: map[room]ending{}} }

// The days on which something is done. Most happens in the first ones; on others a company
// would do the same and find nothing new, which costs time and proves little.
var (
	auditDays    = []int{1, 29, 105}        // within the month for which the card provider keeps events
	reverifyDays = []int{2, 9, 39, 80, 110} // the third while letters that failed late are still kept
	peopleDays   = []int{1, 2, 4, 31}
	sweepDays    = []int{5, 37, 90}
)

// When on their days audits are made, and what was closed is looked at again.
const (
	auditHour    = 2*time.Hour + 15*time.Minute
	reverifyHour = 4 * time.Hour
)

// firstAudit and firstReverification are when these are made first, so long after the
// world began.
func firstAudit() time.Duration          { return sinceEpoch(auditDays[0], auditHour) }
func firstReverification() time.Duration { return sinceEpoch(reverifyDays[0], reverifyHour) }

func sinceEpoch(days int, hour time.Duration) time.Duration {
	return epoch.Truncate(day).Add(time.Duration(days)*day + hour).Sub(epoch)
}

// tellEvery is how often people are told of what changed.
const tellEvery = 4 * time.Hour

// schedule puts the daily things on the agenda.
func (w *World) schedule(ctx context.Context) {
	w.run = func(name recon.SourceName) error { return w.sweep(ctx, name) }
	w.changed = func() { w.news(ctx) }
	days := w.plan.nature.days
	for _, daily := range []struct {
		days []int
		hour time.Duration
		do   func(context.Context) error
	}{
		{auditDays, auditHour, w.night},
		{reverifyDays, reverifyHour, w.reverify},
		{peopleDays, 9 * time.Hour, w.morning},
		{sweepDays, 12 * time.Hour, w.sweepAll},
		{statementDays, 23 * time.Hour, w.importStatement},
		{replayDays, 14 * time.Hour, w.replay},
		{eraseDays, 11 * time.Hour, w.erase},
	} {
		for _, d := range daily.days {
			if d < days {
				w.agenda.Plan(epoch.Add(sinceEpoch(d, daily.hour)), func() error { return daily.do(ctx) })
			}
		}
	}
}

// expect plans a sweep of the source at the first tick at or after a time.
func (w *World) expect(source recon.SourceName, at time.Time) {
	every := w.cadence(at)
	switch {
	case source == told && w.settled():
		every = 5 * day
	case source == told: // every sweep is blind
		every = day / 2
	}
	t := tick{source, at.Add(every - 1).Truncate(every)}
	if now := w.clock.Now(); !t.at.After(now) {
		t.at = now.Truncate(every).Add(every)
	}
	if w.planned[t] || t.at.After(w.over()) {
		return
	}
	w.planned[t] = true
	w.agenda.Plan(t.at, func() error {
		delete(w.planned, t)
		return w.run(source)
	})
}

// cadence is how often a source is swept around a time. A company would go on as it began;
// what is due in hours or days is then seen a little sooner, and nothing else is shown.
func (w *World) cadence(at time.Time) time.Duration {
	switch ahead := at.Sub(w.clock.Now()); {
	case at.Sub(epoch) > 5*day:
		return 7 * day
	case ahead > 2*time.Hour:
		return 2 * time.Hour
	case ahead > 30*time.Minute:
		return 30 * time.Minute
	case ahead > 10*time.Minute:
		return max(15*time.Minute, w.plan.nature.cadence)
	}
	return w.plan.nature.cadence
}

// settled reports whether it is long shown what comes of it that nothing can be asked at
// the source that is told.
func (w *World) settled() bool { return w.clock.Now().Sub(epoch) > 6*day }

// asked are the sources that are looked at in the usual way now.
func (w *World) asked() []recon.SourceName {
	if w.settled() {
		return slices.DeleteFunc(slices.Clone(sourceNames), func(s recon.SourceName) bool { return s == told })
	}
	return sourceNames
}

// over is when the world ends.
func (w *World) over() time.Time { return epoch.Add(time.Duration(w.plan.nature.days) * day) }

// retryAt plans the next probe of a source that does not answer, the later the longer it has
// not. One that never will is asked when one of its operations is due.
func (w *World) retryAt(source recon.SourceName) {
	if source == told {
		return
	}
	now, away := w.clock.Now(), time.Duration(0)
	if since, blind := w.blind[source]; blind {
		away = now.Sub(since)
	}
	if away < 10*time.Minute {
		w.expect(source, now.Add(time.Minute))
	}
	w.expect(source, now.Add(min(max(away, 10*time.Minute), time.Hour)))
}

func (w *World) sweepAll(ctx context.Context) error {
	for _, name := range sourceNames {
		if err := w.sweep(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// sweep is one sweep of one source.
func (w *World) sweep(ctx context.Context, name recon.SourceName) error {
	if w.busy() {
		w.expect(name, w.deadTill.Add(time.Second))
		return nil
	}
	var out sweep.Outcome
	err := w.mortally(inSweep, func() (err error) {
		out, err = w.sweeps[name].Run(ctx, sweep.Options{Now: w.clock.Now, Tick: w.clock.Now().Format(time.RFC3339)})
		return err
	})
	var done *ledger.TickError
	switch {
	case errors.As(err, &done): // at this minute it was swept before
		return nil
	case errors.Is(err, errDied):
		w.expect(name, w.deadTill.Add(time.Second))
		return nil
	case err != nil:
		return err
	case out.SetAside > 0:
		return fmt.Errorf("sweep of %s: %d conclusions could not be recorded", name, out.SetAside)
	}
	return w.wakes(ctx, name)
}

// reverify looks at closed operations whose rung is due.
func (w *World) reverify(ctx context.Context) error {
	if w.busy() {
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.reverify(ctx) })
		return nil
	}
	blind := false
	for _, name := range w.asked() {
		due, err := w.ledger.Due(ctx, ledger.Scope{Source: name, Ladder: ledger.ClosedOperations}, w.clock.Now(), 1)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			continue
		}
		var out sweep.Outcome
		err = w.mortally(inReverify, func() (err error) {
			out, err = w.sweeps[name].Reverify(ctx, sweep.Options{Now: w.clock.Now, Tick: w.clock.Now().Format(time.RFC3339)})
			return err
		})
		if errors.Is(err, errDied) {
			w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.reverify(ctx) })
			return nil
		}
		if err != nil {
			return err
		}
		blind = blind || out.Blind > 0 && name != told
	}
	w.reverifying.after(w, !blind, func() error { return w.reverify(ctx) }) // sooner than tomorrow
	return nil
}

// night is the nightly audit of every source, and the report of the day before.
func (w *World) night(ctx context.Context) error {
	if w.busy() {
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.night(ctx) })
		return nil
	}
	for _, name := range w.asked() {
		var out sweep.AuditResult
		err := w.mortally(inAudit, func() (err error) {
			out, err = w.audits[name].Run(ctx, sweep.AuditOptions{Now: w.clock.Now})
			return err
		})
		if errors.Is(err, errDied) {
			w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.night(ctx) })
			return nil
		}
		if err != nil {
			return err
		}
		w.audited(name, out)
	}
	if err := w.recoverTold(ctx); err != nil {
		return err
	}
	return w.report(ctx)
}

// report makes the report of the day before and tells it.
func (w *World) report(ctx context.Context) error {
	window, name := nightly.DayBefore(w.clock.Now(), time.UTC)
	err := w.mortally(inReport, func() error {
		n, err := nightly.Report{Ledger: w.ledger, Zone: time.UTC, Holder: "product"}.Make(ctx, window, name)
		if err != nil {
			return err
		}
		return w.ledger.TellReport(ctx, reports.NightlyNews(n, "report.html"), "product", []string{destination}, w.clock.Now())
	})
	if errors.Is(err, errDied) {
		w.agenda.Plan(w.deadTill.Add(time.Second), func() error { return w.report(ctx) })
		return nil
	}
	if err == nil {
		w.reported++
	}
	return err
}

// news plans that people are told.
func (w *World) news(ctx context.Context) {
	at := w.clock.Now().Truncate(tellEvery).Add(tellEvery)
	if w.telling || at.After(w.over()) {
		return
	}
	w.telling = true
	w.agenda.Plan(at, func() error { return w.tell(ctx) })
}

// tell plans who is told of what changed, and delivers until nothing is due. What the
// workspace did not take is tried again an hour later.
func (w *World) tell(ctx context.Context) error {
	w.telling = false
	return w.tellNow(ctx)
}

// tellNow does so out of turn.
func (w *World) tellNow(ctx context.Context) error {
	planned, delivered := 0, 0
	err := w.mortally(inTelling, func() (err error) {
		if planned, err = w.planner.Pass(ctx); err != nil {
			return err
		}
		for n := 1; n > 0 && err == nil; delivered += n {
			n, err = w.deliver.Pass(ctx)
		}
		return err
	})
	if err != nil && !errors.Is(err, errDied) {
		return err
	}
	if planned > w.standing() || delivered > 0 || err != nil {
		w.news(ctx) // what was planned may wait for others that open with it
	}
	return nil
}

// collect puts the card provider's next posting on the agenda.
func (w *World) collect(ctx context.Context) {
	at, due := w.at.cards.NextPost()
	if !due {
		return
	}
	every := min(w.cadence(at), 2*time.Hour)
	at = at.Add(-w.plan.nature.skew).Add(every - 1).Truncate(every)
	if now := w.clock.Now(); at.Before(now) {
		at = now.Truncate(every).Add(every)
	}
	if !w.mailAt.IsZero() && !w.mailAt.After(at) || at.After(w.over()) {
		return
	}
	w.mailAt = at
	w.agenda.Plan(at, func() error {
		if w.mailAt.Equal(at) {
			w.mailAt = time.Time{}
		}
		return w.deliveries(ctx)
	})
}

// deliveries lets the card provider post what is due, and takes it in.
func (w *World) deliveries(ctx context.Context) error {
	n, err := w.at.cards.Post(ctx)
	if err != nil || n == 0 {
		return err
	}
	err = w.mortally(inIntake, func() error {
		out, err := w.newIntake().Run(ctx, w.clock.Now)
		for _, name := range sourceNames {
			if out.Left[name] {
				w.expect(name, w.clock.Now())
			}
		}
		return err
	})
	if errors.Is(err, errDied) {
		// What it took is taken again when its lease is over.
		w.agenda.Plan(w.clock.Now().Add(3*time.Minute), func() error {
			_, err := w.newIntake().Run(ctx, w.clock.Now)
			return err
		})
		return nil
	}
	return err
}

// newIntake joins the source that has events with the inbox. It is made anew for every
// pass: what it remembers of the last one is by the real clock.
func (w *World) newIntake() *sweep.Intake {
	in := &sweep.Intake{
		Inbox: w.inbox, Ledger: w.ledger, Sources: []sweep.IntakeSource{w.cards, w.told}, Sheets: map[recon.SourceName]recon.Sheet{},
		Kinds: map[recon.SourceName][]string{cards: {"refund"}, told: {"refund"}, bank: {"payout"}, letters: {"email"}},
		Watch: sweep.IntakeWatch{Judged: w.judged, Ended: w.ended},
	}
	for name, s := range w.sources {
		in.Sheets[name] = s.Sheet()
	}
	return in
}

func lower(currency string) string { return strings.ToLower(currency) }
